"""Generated questions on short messages: who was it, or where was it?

A message has three clauses: one with a name that may answer the question, one with a clear name of the other kind, and
one without a name. Some names are clear ("anna berg", "oslo"), others doubtful ("paris hill"): only
`DOUBTFUL_POSITIVE` of the doubtful ones answer the question; the other questions have no answer.

Planted effect: a doubtful name is more often no answer, so the best score ignores it: with 60 % of the questions
answerable and noise 0.25, a perfect model has F1 85, made of 75 on questions with an answer and 100 on those without.
Answering with the doubtful ones gives 77.5 (100 and 44); answering none 40. What a study should find (2000 questions, 8
epochs, tiny encoder, three seeds): one item of 17 is a start and one an end, so that for one epoch or two almost no
question is answered. Cross-entropy over positions or over tokens then reaches 82 to 85 on test, dice over tokens 80 to
85, its slowest seed not yet converged. Tuning the threshold on dev changes that by 1.
"""

from __future__ import annotations

import random

from dice_ray.data.records import AnswerSpan, QuestionRecord
from dice_ray.data.synthetic.phrases import THINGS, num_doubtful
from dice_ray.data.synthetic.tagging import CUES, NAMES, STATES, TIMES

_KINDS = {"who was it ?": "PER", "where was it ?": "LOC"}
"""The questions, and the kind of name that answers each."""


def questions(size: int, positive_share: float, noise: float, state: random.Random) -> tuple[QuestionRecord, ...]:
    """Generate questions, `positive_share` of them with an answer; at least one with and one without."""
    num_positive = min(max(1, round(positive_share * size)), size - 1)
    doubtful, doubtful_none = num_doubtful(num_positive, noise)
    rows = [("doubtful", True)] * doubtful + [("clear", True)] * (num_positive - doubtful)
    rows += [("doubtful", False)] * min(doubtful_none, size - num_positive)
    rows += [("", False)] * (size - len(rows))
    state.shuffle(rows)
    return tuple(_question(str(number), *row, state) for number, row in enumerate(rows, start=1))


def _question(id: str, evidence: str, has_answer: bool, state: random.Random) -> QuestionRecord:
    question, kind = state.choice(list(_KINDS.items()))
    (other,) = set(_KINDS.values()) - {kind}
    name = _name(kind if evidence == "clear" else evidence, state) if evidence else ""
    clauses = [_clause(name, state), _clause(_name(other, state), state), _clause("", state)]
    state.shuffle(clauses)
    context = " , ".join(clauses) + " ."
    answers = ((AnswerSpan(name, context.index(name)),),) if has_answer else ()
    return QuestionRecord(id, question, context, answers, impossible=not has_answer, group=id)


def _name(kind: str, state: random.Random) -> str:
    length = state.choice((1, 2))
    return " ".join(state.choice(choices) for choices in NAMES[kind][:length])


def _clause(name: str, state: random.Random) -> str:
    if name:
        return f"{state.choice(CUES)} {name} {state.choice(TIMES[1])}"
    return f"my {state.choice(THINGS)} {state.choice(STATES)}"
