"""SQuAD's evaluation after its published steps, over a whole data set: an independent reference for ours."""

from __future__ import annotations

import collections
import re
import string


def tokens(text: str) -> list[str]:
    text = "".join(character for character in text.lower() if character not in set(string.punctuation))
    return re.sub(r"\b(a|an|the)\b", " ", text).split()


def exact(answer: str, prediction: str) -> float:
    return float(tokens(answer) == tokens(prediction))


def f1(answer: str, prediction: str) -> float:
    wanted, found = tokens(answer), tokens(prediction)
    same = sum((collections.Counter(wanted) & collections.Counter(found)).values())
    if not wanted or not found:
        return float(wanted == found)
    return 2 * same / (len(wanted) + len(found))


def evaluate(gold: dict[str, list[str]], predictions: dict[str, str]) -> dict[str, float]:
    """Means over all questions, over those with and those without an answer."""
    answers = {id: [text for text in texts if tokens(text)] or [""] for id, texts in gold.items()}
    scores = {
        name: {id: max(metric(text, predictions[id]) for text in texts) for id, texts in answers.items()}
        for name, metric in (("exact", exact), ("f1", f1))
    }
    groups = {"": list(gold), "has_answer_": [id for id in gold if gold[id]]}
    groups["no_answer_"] = [id for id in gold if not gold[id]]
    return {
        f"{group}{name}": sum(of_question[id] for id in ids) / len(ids)
        for group, ids in groups.items()
        for name, of_question in scores.items()
        if ids
    }


def best_f1(gold: dict[str, list[str]], predictions: dict[str, str], no_answer: dict[str, float]) -> float:
    """The best mean F1 over all thresholds above which a question is left unanswered, as in the published search."""
    score = best = float(sum(not texts for texts in gold.values()))
    for id in sorted(no_answer, key=lambda id: no_answer[id]):
        if gold[id]:
            score += max(f1(text, predictions[id]) for text in gold[id])
        elif predictions[id]:
            score -= 1
        best = max(best, score)
    return best / len(gold)
