"""The tasks of the contract suite: every registered task in each of its forms, with generated records."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from pydantic import TypeAdapter
from tokenizers import processors
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from dice_ray.data.records import AnswerSpan, PairRecord, QueryRecord, QuestionRecord, TaggedRecord, TextRecord
from dice_ray.data.synthetic import KINDS, SyntheticConfig, generate
from dice_ray.models.encoder import ModelConfig, load_tokenizer
from dice_ray.settings import branches_of
from dice_ray.tasks import TaskConfig
from dice_ray.tasks.base import Batch, Row, Scores, Task, TaskBranch
from dice_ray.terms import Term

WIDTH = 8
FORMS: dict[str, list[dict[str, Any]]] = {
    "mrc_ner": [{}, {"spans": "nested"}, {"weights": {"match": 0, "answerable": 0}}],
    "extractive_qa": [
        {},
        {"formulation": "token"},
        {"scoring": "squad_v1"},
        {"scoring": "cmrc", "formulation": "token"},
        {"scoring": "quoref", "formulation": "token", "spans": "several"},
    ],
    "tagging": [
        {},
        {"unit": "character"},
        {"tags": "plain"},
        {"tags": "plain", "unit": "character"},
        {"tags": "plain", "background": "O"},
    ],
    "text_classification": [
        {},
        {"score": "macro_f1"},
        {"positive": "safety"},
        {"positive": "safety", "link": "sigmoid"},
        {"labels": "several"},
    ],
}
CUT: dict[str, str] = {"sentence_pair": "the longer sentence of a pair is cut, and the row marked"}
"""Tasks whose rows may lose text, and why."""
LEAST_STRIDE: dict[str, int] = {"extractive_qa": 1, "mrc_ner": 2}
"""The least overlap of windows with which one holds each gold span as a whole: names have up to three words."""


def configs() -> list[TaskBranch]:
    """Every registered task in each of its forms; a task without forms of its own in its default."""
    task: TypeAdapter[TaskBranch] = TypeAdapter(TaskConfig)
    return [task.validate_python({name: form}) for name in branches_of(TaskConfig) for form in FORMS.get(name, [{}])]


def name_of(config: TaskBranch) -> str:
    """The task and the settings of its form."""
    written = [f"{key}={getattr(config, key)}" for key in sorted(config.model_fields_set)]
    return " ".join([config.name, *written])


def records_of(config: TaskBranch, size: int = 60) -> tuple[Any, ...]:
    """Generated records for this form of the task."""
    kinds = [kind for kind, (record, _) in KINDS.items() if record in config.records]
    kind = "queries" if getattr(config, "spans", None) == "nested" else kinds[-1]
    records = generate(SyntheticConfig(kind=kind, size=size))["train"]
    if getattr(config, "positive", None) == "safety":
        return tuple(
            replace(record, labels=("safety" if number % 3 else "other",)) for number, record in enumerate(records)
        )
    if getattr(config, "scoring", "squad_v2") != "squad_v2":
        records = tuple(record for record in generate(SyntheticConfig(kind=kind, size=10 * size))["train"])
        records = tuple(record for record in records if not record.impossible)[:size]
    if getattr(config, "spans", None) == "several":
        return tuple(_with_second_span(record) if number % 2 else record for number, record in enumerate(records))
    if getattr(config, "labels", None) == "several":
        return tuple(replace(record, labels=tuple(dict.fromkeys((*record.labels, "loud")))) for record in records)
    return records


def ids_of(records: Sequence[Any]) -> list[str]:
    """The ids of scored items: records, or the sentences of query records."""
    return list(dict.fromkeys(record.group if isinstance(record, QueryRecord) else record.id for record in records))


def longer(record: Any, times: int) -> Any:
    """The same record, `times` as long."""
    match record:
        case PairRecord():
            return replace(record, first=" ".join([record.first] * times), second=" ".join([record.second] * times))
        case TextRecord():
            return replace(record, text=" ".join([record.text] * times))
        case QuestionRecord():
            return replace(record, context=" ".join([record.context] * times))
        case TaggedRecord():
            return replace(record, words=record.words * times, tags=record.tags * times)
        case QueryRecord():
            starts = [len(record.words) * time for time in range(times)]
            spans = tuple((first + start, end + start) for start in starts for first, end in record.spans)
            return replace(record, words=record.words * times, spans=spans)
    raise AssertionError(f"define a longer {type(record).__name__}")


def stripped(record: Any) -> Any:
    """The record without its label."""
    match record:
        case PairRecord():
            return replace(record, label="")
        case TextRecord():
            return replace(record, labels=())
        case TaggedRecord():
            return replace(record, tags=())
        case QuestionRecord():
            return replace(record, answers=(), impossible=False)
        case QueryRecord():
            return replace(record, spans=())
    raise AssertionError(f"define a {type(record).__name__} without its label")


def xlnet_like(tokenizer: PreTrainedTokenizerBase) -> PreTrainedTokenizerBase:
    """A copy of the tokenizer that puts [CLS] last, as XLNet's does."""
    found = copy.deepcopy(tokenizer)
    ids = [(token, found.convert_tokens_to_ids(token)) for token in ("[CLS]", "[SEP]")]
    found.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="$A [SEP] [CLS]", pair="$A [SEP] $B:1 [SEP]:1 [CLS]:2", special_tokens=ids
    )
    return found


def _with_second_span(record: QuestionRecord) -> QuestionRecord:
    """The same question, with the last two words as a part of the answer."""
    start = record.context.rindex(" ", 0, record.context.rindex(" ")) + 1
    return replace(record, answers=((*record.answers[0], AnswerSpan(record.context[start:], start)),))


class Built:
    """A task, the tokenizer, and its encoded records."""

    def __init__(self, config: TaskBranch, records: Sequence[Any], encoder: str = "tiny") -> None:
        self.name, self.objective = config.name, config.objective()
        self.records = records
        self.task: Task[Any] = config.build(config.classes(records))
        self.tokenizer = load_tokenizer(ModelConfig(encoder=encoder), self.task.texts(records))
        self.rows: list[Row] = self.task.encode(records, self.tokenizer)
        self.facts = self.task.facts(self.rows)
        self.heads = self.task.heads(WIDTH, ModelConfig(dropout=0.0))

    def batches(self, size: int = 16) -> list[Batch]:
        every = range(len(self.rows))
        return [self.task.collate(self.rows, every[first : first + size], self.tokenizer) for first in every[::size]]

    def gold_scores(self) -> Scores:
        """The scores of logits that predict the targets."""
        decoded = [item for batch in self.batches() for item in self.task.decode(self.gold(batch), batch)]
        decisions = self.task.decide(self.records, self.rows, decoded)
        return self.task.score(self.records, self.rows, decoded, decisions)

    def logits(self, batch: Batch) -> dict[str, Tensor]:
        """The logits of new heads for random hidden states."""
        generator = torch.Generator().manual_seed(0)
        hidden_BLH = torch.randn((*batch.inputs["input_ids"].shape, WIDTH), generator=generator)
        return {name: head(hidden_BLH, batch.inputs, batch.targets) for name, head in self.heads.items()}

    def gold(self, batch: Batch) -> dict[str, Tensor]:
        """Logits that predict the targets, in the shapes of the heads."""
        logits = self.logits(batch)
        links = {facts.name: facts.link for facts in self.facts}
        terms = self.task.terms(logits, batch)
        return {name: _gold(links[name], term).reshape(logits[name].shape) for name, term in terms.items()}


def _gold(link: str, term: Term) -> Tensor:
    if link == "sigmoid":
        return 100.0 * term.targets - 50
    targets = term.targets.clamp(min=0)
    return 50 * torch.nn.functional.one_hot(targets, term.logits.shape[-1]).to(term.logits)
