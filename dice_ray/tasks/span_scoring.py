"""The scores of a split's spans: those that a model predicts, and those of answers of other programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from dice_ray.errors import InputError
from dice_ray.metrics.classification import Counts, ItemCounts
from dice_ray.metrics.decisions import FittedDecision
from dice_ray.metrics.spans import Span, span_item, span_scores, sum_counts
from dice_ray.tasks.answers import Answers
from dice_ray.tasks.base import Scores


def split_scores(
    ids: Collection[str],
    counts: Sequence[Mapping[str, Counts]],
    others: Mapping[str, float],
    *,
    collapsed: bool,
    decision: FittedDecision | None = None,
    tuned: Iterable[Mapping[str, Counts]] = (),
) -> Scores:
    """The scores by the counts of each text by type: untuned, and with the tuned numbers of a decision.

    `others` are the task's other metrics.
    """
    total, tuned_items = sum_counts(counts), tuple[ItemCounts, ...]()
    metrics = {**span_scores(total), **others}
    if decision is not None:
        tuned_items = tuple(map(span_item, ids, tuned))
        metrics |= {f"{name}_tuned": value for name, value in sum(tuned_items, Counts()).scores.items()}
        metrics |= decision.metrics
    items = tuple(map(span_item, ids, counts))
    return Scores(metrics, collapsed, items=items, tuned_items=tuned_items, classes=total)


def constant_f1(gold: Collection[set[Span]], num_words: int) -> float:
    """The F1 of predicting each word as a span of the best type, which is right for the spans of one word."""
    singles = Counter(type_ for spans in gold for type_, first, end in spans if end == first + 1)
    num_gold, num_right = sum(map(len, gold)), max(singles.values(), default=0)
    return Counts(num_right, num_words - num_right, num_gold - num_right).f1


def span_answers(counts: Mapping[str, Mapping[str, Counts]], answers: Answers, dev: object) -> Scores:
    """The scores of spans that another program predicted, by the counts of each text; there must be none of dev."""
    check_no_dev(answers, dev)
    answers.check()
    is_empty = not any(each.tp + each.fp for of_text in counts.values() for each in of_text.values())
    return split_scores(counts.keys(), [*counts.values()], {}, collapsed=is_empty)


def check_no_dev(answers: Answers, dev: object) -> None:
    """Check that there are no answers to dev, which can tune nothing without probabilities."""
    if dev is not None:
        raise InputError(f"predictions of dev tune the decision of probabilities, and {answers.file} has none")
