"""The task of records, whatever format they are read from, and the reasons for it as comments of a preset."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Final, Literal

from dice_ray.data.records import (
    NestedRecord,
    PairRecord,
    QueryRecord,
    QuestionRecord,
    Record,
    TaggedRecord,
    TextRecord,
)
from dice_ray.settings import Nested

_POSITIVES: Final = frozenset(
    ["true", "yes", "y", "t", "positive", "pos", "spam", "toxic", "duplicate", "paraphrase", "entailment"]
)
_ZEROS: Final = frozenset(["0", "0.0", "-1", "-1.0", "false"])
"""The labels beside which 1 is positive; beside a 2, for example, it is a number like any other."""
_MIN_IMBALANCE: Final = 1.5
"""The ratio of the more frequent to the rarer label from which the rarer one is taken as positive."""


def task_of(
    records: Sequence[Record], tags: Literal["spans", "plain"] = "spans"
) -> tuple[Nested, dict[str, str]] | str:
    """The value of `task` for records, with reasons by path; or the reason why there is none.

    Args:
        records: Records of one type, or texts of which some are pairs; at least one.
        tags: What the tags of words mark.
    """
    match records[0]:
        case TaggedRecord():
            return _tagging(records, tags)
        case NestedRecord():
            types = {span.type for record in records if isinstance(record, NestedRecord) for span in record.spans}
            return {"mrc_ner": {"spans": "nested"}}, {
                "task": f"Spans lie within other spans. There is a query for each of the {len(types)} types, so that a "
                f"sentence goes through the encoder {len(types)} times."
            }
        case QuestionRecord():
            return _questions([record for record in records if isinstance(record, QuestionRecord)])
        case QueryRecord():
            return _queries([record for record in records if isinstance(record, QueryRecord)])
    return _classification(records)


def _classification(records: Sequence[Record]) -> tuple[Nested, dict[str, str]] | str:
    """The task of texts or pairs with labels, and the positive label."""
    pair_labels = [record.label for record in records if isinstance(record, PairRecord)]
    text_labels = [record.labels for record in records if isinstance(record, TextRecord)]
    counts = Counter(pair_labels or [label for labels in text_labels for label in labels])
    if not counts:
        return "no row has a label"
    rarer = min(counts, key=lambda label: counts[label])
    names = _POSITIVES | ({"1", "1.0"} if any(label.lower() in _ZEROS for label in counts) else set())
    is_unbalanced = max(counts.values()) >= _MIN_IMBALANCE * counts[rarer]
    # The F1 of a more frequent label is high for a model that has learned nothing; but pairs are by convention scored
    # by the label that names the relation, which is the more frequent one in MRPC.
    candidates = counts if pair_labels or not is_unbalanced else [rarer]
    positive = next((label for label in candidates if label.lower() in names), rarer)
    rarity = "The name of a positive label" if positive.lower() in names else "The rarer label"
    other_labels = " and ".join(repr(label) for label in counts if label != positive)
    reason = f"{rarity}; the other one is {other_labels}."
    what = "Two texts" if pair_labels else "A text"
    decided = {"score": "decision"} if is_unbalanced else {}
    score = "F1 at the threshold fitted on dev; `f1` is that at .5, a probability that a rare label may never reach."
    if pair_labels and len(counts) == 2:
        return {"sentence_pair": {"positive": positive, **decided}}, {
            "task": "Two texts and one of two labels.",
            "task.sentence_pair.positive": reason,
            "task.sentence_pair.score": score,
        }
    task: Nested = {}
    if any(len(labels) != 1 for labels in text_labels):
        task, summary = {"labels": "several"}, "A text has any number of labels."
    elif len(counts) == 2 and is_unbalanced:
        task, summary = {"positive": positive, **decided}, f"{what} with one of two labels."
    elif len(counts) > 2 and is_unbalanced:
        task, summary = {"score": "macro_f1"}, f"{what} with one of {len(counts)} labels."
        score = "The classes are unbalanced, and each counts the same; else `accuracy`."
    else:
        summary = f"{what} with one of {len(counts)} labels, about equally frequent."
        summary += f" `positive: {positive!r}` scores the F1 of that label." if len(counts) == 2 else ""
    return {"text_classification": task}, {
        "task": summary,
        "task.text_classification.positive": f"{reason} Without it, accuracy is the score.",
        "task.text_classification.score": score,
    }


def _tagging(records: Sequence[Record], tags: Literal["spans", "plain"]) -> tuple[Nested, dict[str, str]]:
    """The task of tagged words; Chinese words with plain tags are tagged by character, as they are scored."""
    words = [word for record in records[:1000] if isinstance(record, TaggedRecord) for word in record.words]
    task: Nested = {"tags": "plain"} if tags == "plain" else {}
    if tags == "plain" and _is_chinese(words) and any(len(word) > 1 for word in words):
        task["unit"] = "character"
    reason = "Chinese words: segmentation and tags at once; `word` tags the given words."
    return {"tagging": task}, {"task.tagging.unit": reason}


def _questions(records: Sequence[QuestionRecord]) -> tuple[Nested, dict[str, str]] | str:
    if not any(record.answers for record in records):
        return "no question has an answer, so there is nothing to learn from"
    task: Nested
    if num := sum(record.impossible for record in records):
        task, reason = {"scoring": "squad_v2"}, f"{num} of {len(records)} questions have no answer."
    elif any(len(answer) > 1 for record in records for answer in record.answers):
        task = {"formulation": "token", "spans": "several", "scoring": "quoref"}
        reason = "Questions with several answers; `squad_v1` with `spans: one` predicts only one."
    elif _is_chinese(record.context for record in records[:100]):
        task, reason = {"scoring": "cmrc"}, "The texts are Chinese."
    else:
        task, reason = {"scoring": "squad_v1"}, "Every question has an answer; `squad_v2` if some have none."
    return {"extractive_qa": task}, {"task": "Questions on texts.", "task.extractive_qa.scoring": reason}


def _queries(records: Sequence[QueryRecord]) -> tuple[Nested, dict[str, str]]:
    """The task of queries for types of entities: nested if spans of a sentence share words."""
    spans = defaultdict[str, set[tuple[int, int]]](set)
    for record in records:
        spans[record.group].update(record.spans)
    nested = any(
        first[0] < second[1] and second[0] < first[1]
        for of_sentence in spans.values()
        for first, second in combinations(of_sentence, 2)
    )
    number = "Spans" if nested else "No two spans"
    return {"mrc_ner": {"spans": "nested" if nested else "flat"}}, {
        "task": "Named entities, one query for each type.",
        "task.mrc_ner.spans": f"{number} of a sentence share words.",
    }


def _is_chinese(texts: Iterable[str]) -> bool:
    """Whether more than half of the characters are Chinese, and few are Japanese."""
    text = "".join("".join(texts).split())
    num_han, num_kana = len(re.findall(r"[\u3400-\u9fff]", text)), len(re.findall(r"[\u3040-\u30ff]", text))
    return 2 * num_han > len(text) > 20 * num_kana
