"""Extractive question answering, by one span of the context or several: SQuAD 1.1 and 2.0, QuoRef, CMRC 2018."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field, model_validator
from torch import Tensor, nn

from dice_ray.data.records import QuestionRecord, groups_of
from dice_ray.errors import DataError
from dice_ray.metrics.answers import (
    AnswerScore,
    answer_scores,
    cmrc_score,
    normalised,
    segments,
    spans_score,
    squad_score,
)
from dice_ray.metrics.classification import Counts
from dice_ray.metrics.decisions import UNTUNED_NO_ANSWER, UNTUNED_THRESHOLD, FittedDecision, Numbers
from dice_ray.metrics.fitting import fit_no_answer
from dice_ray.metrics.spans import outcomes_of_choices
from dice_ray.models.heads import TokenHead
from dice_ray.tasks.answer_spans import (
    LOWEST,
    Answer,
    TokenMark,
    answers_of,
    best_spans,
    label,
    num_cut,
    token_characters,
    token_spans,
    usable,
)
from dice_ray.tasks.answers import Answers
from dice_ray.tasks.base import NO_TARGET, Batch, Decoded, Row, Scores, Task, TaskBranch
from dice_ray.tasks.predictions import Json
from dice_ray.tasks.rows import Window, classification_place, padded, paddings_before, windows
from dice_ray.tasks.span_scoring import check_no_dev
from dice_ray.tasks.start_end import END_K1, LOWEST_THRESHOLD, START_K1, UNTUNED, fitted, kept
from dice_ray.terms import Link, Term, TermFacts
from dice_ray.unspaced import words_of

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from dice_ray.models.encoder import ModelConfig

_TERMS = ("start", "end")
_NO_ANSWER = ("no answer", "unanswerable", "not answerable", "na", "none", "null", "impossible")
"""What other programs write for no answer, as `normalised` leaves it."""
_END_OF_SENTENCE = re.compile(r"(?<=[.!?])\s|(?<=[\u3002\uff01\uff1f])")
"""After punctuation and a space, or after Chinese punctuation."""


class ExtractiveQAConfig(TaskBranch):
    """Find the answer to a question in its context; the score is the F1 of the data set's own evaluation.

    Attributes:
        formulation: `position` is a softmax over the positions of a window, one for the start of the answer and one for
            its end; `token` classifies each token as start or not and as end or not, as the paper does.
        spans: `one` answers with the best span, `several` with every likely one.
        scoring: The data set whose evaluation is used; only `squad_v2` has questions without an answer.
        max_length: The longest row, in tokens; a longer context becomes several windows, each behind the question.
        stride: The overlap of those windows, in tokens: an answer longer than that may lie in none as a whole.
        max_answer_length: The longest answer that is predicted, in tokens.
    """

    name = "extractive_qa"
    records = (QuestionRecord,)

    formulation: Literal["position", "token"] = "position"
    spans: Literal["one", "several"] = "one"
    scoring: Literal["squad_v1", "squad_v2", "quoref", "cmrc"] = "squad_v2"
    max_length: int = Field(384, ge=8)
    stride: int = Field(default_factory=lambda above: above.get("max_length", 0) // 3, ge=0, description="max_length/3")
    max_answer_length: int = Field(30, ge=1)

    @model_validator(mode="after")
    def _the_choices_fit(self) -> ExtractiveQAConfig:
        if self.spans == "several" and (self.formulation, self.scoring) != ("token", "quoref"):
            raise ValueError(
                "spans must be one unless formulation is token and scoring quoref, got several with formulation "
                f"{self.formulation} and scoring {self.scoring}"
            )
        return self

    @property
    def link(self) -> Link:
        return "position" if self.formulation == "position" else "sigmoid"

    def links(self) -> frozenset[Link]:
        return frozenset({self.link})

    def classes(self, records: Sequence[QuestionRecord]) -> tuple[str, ...]:
        """Whether a token (for `position`, a window) holds the start or end of an answer."""
        self.check(records)
        if not any(map(usable, records)):
            raise DataError(
                "extractive_qa needs a question whose answer is at its answer_start in the training split, got "
                f"{dict(self.label_counts(records))}"
            )
        return "none", "answer"

    def build(self, classes: tuple[str, ...]) -> _ExtractiveQA:
        return _ExtractiveQA(self, classes)

    def label_counts(self, records: Sequence[QuestionRecord]) -> Counter[str]:
        """The number of questions with each kind of gold answer."""
        return Counter(map(label, records))

    def support(self, records: Sequence[QuestionRecord], classes: Iterable[str]) -> Counter[str]:
        """Questions, whatever their answers."""
        return Counter(questions=len(records))

    def negatives_and_positives(self, records: Sequence[QuestionRecord]) -> tuple[int, int]:
        """The words of all contexts, once for each question; the start and the end of each answer are positive.

        A character of a script without spaces between words, such as Chinese, counts as a word.
        """
        words = segments if self.scoring == "cmrc" else words_of
        num_words = sum(len(words(record.context)) for record in records)
        num_positive = 2 * sum(bool(record.answers) for record in records)
        return num_words - num_positive, num_positive

    def check(self, records: Sequence[QuestionRecord]) -> None:
        """Raise DataError for questions that the chosen evaluation does not support."""
        if self.scoring != "squad_v2" and (num := sum(record.impossible for record in records)):
            raise DataError(
                f"task.extractive_qa.scoring must be squad_v2 for questions without an answer, got {self.scoring} and "
                f"{num} of {len(records)} questions"
            )
        several = [record for record in records if any(len(answer) > 1 for answer in record.answers)]
        if self.scoring != "quoref" and several:
            raise DataError(
                f"task.extractive_qa.scoring must be quoref for answers of several spans, got {self.scoring} and "
                f"{len(several)} of {len(records)} questions (data.source.files.reader.squad.several)"
            )

    def scored(self, record: QuestionRecord, spans: Sequence[str]) -> AnswerScore:
        """The score of these spans as the answer; no spans leave the question unanswered."""
        answers = [[span.text for span in answer] for answer in record.answers]
        if self.scoring == "quoref":
            scores = [spans_score(record.id, spans, answer) for answer in answers]
            return max(scores, key=lambda score: (score.f1, score.exact))
        (text,) = spans or ("",)
        texts = [text for answer in answers for text in answer]
        if self.scoring == "cmrc":
            return cmrc_score(record.id, text, texts)
        return squad_score(record.id, text, texts, "v2" if self.scoring == "squad_v2" else "v1")


class _ExtractiveQA(Task[QuestionRecord]):
    """Questions with two terms of weight 0.5, `start` and `end`, whose items are the context's tokens and [CLS].

    [CLS] is gold in a window that holds no whole span of the answer. A question is trained on the first of its
    alternative answers that is usable; with `spans: one`, on the first of its spans in the window.
    """

    config: ExtractiveQAConfig

    def texts(self, records: Sequence[QuestionRecord]) -> list[str]:
        return [*(record.question for record in records), *dict.fromkeys(record.context for record in records)]

    def encode(self, records: Sequence[QuestionRecord], tokenizer: PreTrainedTokenizerBase) -> list[Row]:
        contexts, questions = [record.context for record in records], [record.question for record in records]
        encoded = windows(tokenizer, contexts, self.config.max_length, self.config.stride, questions)
        return [
            self._row(record, window, window is of_record[0], window is of_record[-1], tokenizer)
            for record, of_record in zip(records, encoded, strict=True)
            for window in of_record
        ]

    def _row(
        self, record: QuestionRecord, window: Window, is_first: bool, is_last: bool, tokenizer: PreTrainedTokenizerBase
    ) -> Row:
        context, characters_T2 = token_characters(window.spans, record.context)
        cls = classification_place(window.row, tokenizer)
        spans = usable(record)
        # Characters that no token covers, such as a space before the first word, belong to the outermost windows.
        left = 0 if is_first or not len(characters_T2) else int(characters_T2[0, 0])
        right = len(record.context) if is_last or not len(characters_T2) else int(characters_T2[-1, 1])
        held = token_spans(spans or (), characters_T2, left, right)
        trained = held if self.config.spans == "several" else held[:1]
        return {
            **window.row,
            "context": context,
            "cls": cls,
            "begins": characters_T2[:, 0].tolist(),
            "ends": characters_T2[:, 1].tolist(),
            "known": spans is not None,
            "held": [number for number, _, _ in held],
            "start": [context + start for _, start, _ in trained] or [cls],
            "end": [context + stop for _, _, stop in trained] or [cls],
        }

    def collate(self, rows: Sequence[Row], indices: Sequence[int], tokenizer: PreTrainedTokenizerBase) -> Batch:
        chosen = [rows[index] for index in indices]
        inputs = padded(chosen, tokenizer)
        context_BL = torch.zeros_like(inputs["input_ids"], dtype=torch.bool)
        cls_B = torch.zeros(len(chosen), dtype=torch.long)
        known_B = torch.tensor([bool(row["known"]) for row in chosen])
        gold = {name: torch.zeros_like(inputs["input_ids"]) for name in _TERMS}
        for number, (row, padding) in enumerate(zip(chosen, paddings_before(chosen, tokenizer), strict=True)):
            first = padding + row["context"]
            context_BL[number, first : first + len(row["begins"])] = True
            cls_B[number] = padding + row["cls"]
            for name in _TERMS:
                gold[name][number, torch.tensor(row[name]) + padding] = 1
        if self.config.formulation == "position":
            gold = {name: gold_BL.argmax(-1).masked_fill(~known_B, NO_TARGET) for name, gold_BL in gold.items()}
        return Batch(inputs, {"context": context_BL, "cls": cls_B, "known": known_B, **gold}, tuple(indices))

    def facts(self, rows: Sequence[Row]) -> tuple[TermFacts, ...]:
        known = [row for row in rows if row["known"]]
        facts = []
        for name in _TERMS:
            if self.config.formulation == "position":
                num_items, num_positive = len(known), sum(len(row["held"]) > 0 for row in known)
            else:
                num_items = sum(len(row["begins"]) + 1 for row in known)
                num_positive = sum(len(set(map(int, row[name]))) for row in known)
            counts = (num_items - num_positive, num_positive)
            facts.append(TermFacts(name, self.config.link, self.classes, counts, background=0))
        return tuple(facts)

    def heads(self, width: int, model: ModelConfig) -> dict[str, nn.Module]:
        return {name: TokenHead(width, 1, model.dropout) for name in _TERMS}

    def terms(self, logits: Mapping[str, Tensor], batch: Batch) -> dict[str, Term]:
        items_BL = _with_cls(batch)
        if self.config.formulation == "token":
            items_BL &= batch.targets["known"][:, None]
        return {name: Term(logits[name][..., 0], batch.targets[name], items_BL, weight=0.5) for name in _TERMS}

    def decode(self, logits: Mapping[str, Tensor], batch: Batch) -> list[list[float]]:
        """For each row: the log probabilities of its best span and of no answer, then the best span.

        A span is its first and last token, counted from the first token of the context. With several spans follows each
        token that some thresholds take for a start or an end, with the log probabilities of both. Probabilities are by
        the terms' link.
        """
        context_BL, cls_B1 = batch.targets["context"], batch.targets["cls"][:, None]
        items_BL, longest = _with_cls(batch), self.config.max_answer_length
        log_p = {name: self._log_probabilities(logits[name][..., 0], items_BL) for name in _TERMS}
        start_BL, end_BL = (log_p[name].masked_fill(~context_BL, LOWEST) for name in _TERMS)
        score_B, first_B, last_B = best_spans(start_BL, end_BL, longest)
        null_B = (log_p["start"] + log_p["end"]).gather(1, cls_B1)[:, 0]
        before_B = context_BL.int().argmax(-1)
        columns = (score_B.clamp(min=LOWEST), null_B, first_B - before_B, last_B - before_B)
        decoded: list[list[float]] = torch.stack(columns, 1).tolist()
        if self.config.spans == "several":
            either_BL = torch.maximum(start_BL, end_BL)
            likely_BL, untuned_BL = (either_BL > np.log(level) for level in (LOWEST_THRESHOLD, UNTUNED_THRESHOLD))
            kept_BL = kept(likely_BL, untuned_BL, either_BL.exp())
            log_p_N2 = torch.stack([start_BL[kept_BL], end_BL[kept_BL]], 1)
            for (number, place), log_p_2 in zip(kept_BL.nonzero().tolist(), log_p_N2.tolist(), strict=True):
                decoded[number] += [place - int(before_B[number]), *log_p_2]
        return decoded

    def _log_probabilities(self, logits_BL: Tensor, items_BL: Tensor) -> Tensor:
        logits_BL = logits_BL.double()
        if self.config.formulation == "token":
            return nn.functional.logsigmoid(logits_BL)
        return logits_BL.masked_fill(~items_BL, -torch.inf).log_softmax(-1)

    def decide(self, records: Sequence[QuestionRecord], rows: Sequence[Row], decoded: Decoded) -> FittedDecision | None:
        self._check(records)
        answers = answers_of(records, rows, decoded)
        if self.config.spans == "several":
            return fitted(list(map(self._counts, records, answers)), groups_of(records))
        if self.config.scoring != "squad_v2":
            return None
        scores = self._scored(records, [answer.texts() for answer in answers])
        return fit_no_answer(
            np.array([answer.no_answer for answer in answers]),
            np.array([score.f1 * score.answerable for score in scores]),
            np.array([score.answerable for score in scores]),
            groups_of(records),
        )

    def _counts(self, record: QuestionRecord, answer: Answer) -> NDArray[np.float64]:
        """`counts_K3` of the answer by each pair of thresholds, whose micro F1 over questions is their mean F1."""
        scored = cache(partial(self.config.scored, record))

        def counts(marks: list[TokenMark]) -> tuple[float, float, float]:
            f1 = scored(answer.texts(marks, self.config.max_answer_length)).f1
            return f1, 1 - f1, 1 - f1

        is_end_M = np.array([mark.is_end for mark in answer.marks], dtype=np.bool_)
        limits_KM = np.log(np.where(is_end_M, END_K1, START_K1))
        return outcomes_of_choices(answer.marks, np.array([mark.log_p for mark in answer.marks]) > limits_KM, counts)

    def score(
        self, records: Sequence[QuestionRecord], rows: Sequence[Row], decoded: Decoded, decision: FittedDecision | None
    ) -> Scores:
        """The scores of the most probable answers, and those at thresholds tuned on dev.

        The constant predictor does not read the question: in `squad_v2` it leaves every question unanswered, else it
        answers with the first sentence of the context. An item's counts are words (characters in Chinese): shared with
        the gold answer, predicted only, and gold only. `collapsed` means the same answer to all questions.
        """
        self._check(records)
        answers = answers_of(records, rows, decoded)
        predicted = [self._predicted(answer) for answer in answers]
        scores, tuned_scores = self._scored(records, predicted), list[AnswerScore]()
        metrics = answer_scores(scores)
        if decision is not None:
            tuned_scores = self._scored(records, [self._predicted(answer, decision.tuned) for answer in answers])
            tuned = answer_scores(tuned_scores)
            metrics |= {f"{name}_tuned": tuned[name] for name in ("exact", "f1")} | decision.metrics
        fixed: list[tuple[str, ...]] = [()] * len(records)
        if self.config.scoring != "squad_v2":
            fixed = [(_END_OF_SENTENCE.split(record.context.strip(), 1)[0],) for record in records]
        constant = answer_scores(self._scored(records, fixed))
        metrics |= {f"constant_{name}": constant[name] for name in ("exact", "f1")}
        misplaced = sum(usable(record) is None for record in records)
        metrics |= {"answers_misplaced": float(misplaced), "answers_cut": float(num_cut(records, rows))}
        items, tuned_items = (tuple(score.item for score in each) for each in (scores, tuned_scores))
        return Scores(metrics, collapsed=len(set(predicted)) == 1, items=items, tuned_items=tuned_items)

    def predict(
        self, records: Sequence[QuestionRecord], rows: Sequence[Row], decoded: Decoded, decision: FittedDecision | None
    ) -> Json:
        """The answer to each question by its id, empty for no answer; lists if there may be several spans."""
        numbers = None if decision is None else decision.used
        predicted = [self._predicted(answer, numbers) for answer in answers_of(records, rows, decoded)]
        is_list = self.config.spans == "several"
        answers = [list(spans) if is_list else next(iter(spans), "") for spans in predicted]
        return Json(dict(zip([record.id for record in records], answers, strict=True)))

    def score_answers(
        self, records: Sequence[QuestionRecord], answers: Answers, dev: tuple[Sequence[QuestionRecord], Answers] | None
    ) -> tuple[Scores, str]:
        """By the text of each answer, or a list of texts; an empty one is no answer."""
        check_no_dev(answers, dev)
        given = [self._given(record.id, answers) for record in records]
        answers.check()
        scores = [
            # One that is missing is wrong, also where the question has no answer.
            replace(score, exact=0.0, f1=0.0, counts=score.counts + Counts(0, 1, 0)) if texts is None else score
            for texts, score in zip(given, self._scored(records, [texts or () for texts in given]), strict=True)
        ]
        items = tuple(score.item for score in scores)
        return Scores(answer_scores(scores), collapsed=len(set(given)) == 1, items=items), "wrong"

    def _given(self, id_: str, answers: Answers) -> tuple[str, ...] | None:
        """The texts of an answer, none of them for no answer; None where it is missing or cannot be read."""
        given = answers.by_id[id_].get("answer")
        texts: list[Any] = given if isinstance(given, list) else [given]
        if not all(isinstance(text, str) for text in texts) or (self.config.spans == "one" and len(texts) > 1):
            answers.unread(id_, given)
            return None
        if self.config.scoring == "squad_v2" and len(texts) == 1 and normalised(texts[0]) in _NO_ANSWER:
            answers.note("empty", id_, texts[0])
            return ()
        return tuple(text for text in texts if text)

    def _check(self, records: Sequence[QuestionRecord]) -> None:
        self.config.check(records)
        if num := sum(label(record) == "unlabelled" for record in records):
            raise DataError(f"every question that is scored must have an answer or be impossible, got {num} without")

    def _predicted(self, answer: Answer, numbers: Numbers | None = None) -> tuple[str, ...]:
        """The answer with these numbers of the decision, or untuned."""
        if self.config.spans == "several":
            marks = [mark for mark in answer.marks if mark.is_above(numbers or UNTUNED)]
            return answer.texts(marks, self.config.max_answer_length)
        threshold = numbers["threshold"] if numbers else UNTUNED_NO_ANSWER
        return () if self.config.scoring == "squad_v2" and answer.no_answer > threshold else answer.texts()

    def _scored(self, records: Sequence[QuestionRecord], answers: Sequence[tuple[str, ...]]) -> list[AnswerScore]:
        return [self.config.scored(record, spans) for record, spans in zip(records, answers, strict=True)]


def _with_cls(batch: Batch) -> Tensor:
    """`items_BL`: the tokens of the context, and [CLS]."""
    return batch.targets["context"].scatter(1, batch.targets["cls"][:, None], True)
