"""Answers of other programs to tasks on spans: their scores, and the spans of answers in MRC-NER's format."""

from __future__ import annotations

from collections.abc import Mapping

from dice_ray.errors import InputError
from dice_ray.metrics.classification import Counts
from dice_ray.metrics.spans import span_item, span_scores, sum_counts
from dice_ray.tasks.answers import Answers
from dice_ray.tasks.base import Scores


def span_answers(counts: Mapping[str, Mapping[str, Counts]], answers: Answers, dev: object) -> Scores:
    """The scores of predicted spans, by the counts of each sentence.

    Raises:
        InputError: There are answers to dev.
        DataError: Most records have no answer.
    """
    check_no_dev(answers, dev)
    answers.check()
    total = sum_counts(counts.values())
    is_empty = not any(each.tp + each.fp for each in total.values())
    items = tuple(span_item(id_, each) for id_, each in counts.items())
    return Scores(span_scores(total), collapsed=is_empty, items=items, classes=total)


def check_no_dev(answers: Answers, dev: object) -> None:
    """Check that there are no answers to dev, which can tune nothing without probabilities."""
    if dev is not None:
        raise InputError(f"predictions of dev tune the decision of probabilities, and {answers.file} has none")


def query_answer(id_: str, num_words: int, answers: Answers) -> set[tuple[int, int]]:
    """The spans of an answer to a query: first word, and the one after the last; none if they cannot be read."""
    firsts, lasts = (answers.by_id[id_].get(f"{name}_position") for name in ("start", "end"))
    if isinstance(firsts, list) and isinstance(lasts, list) and len(firsts) == len(lasts):
        spans = [*zip(firsts, lasts, strict=True)]
        if all(type(first) is type(last) is int and 0 <= first <= last < num_words for first, last in spans):
            return {(first, last + 1) for first, last in spans}
    answers.unread(id_, f"{firsts} to {lasts}")
    return set()
