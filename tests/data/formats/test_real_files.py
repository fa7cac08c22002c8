"""The real files in their published formats: every record that their publishers count, and no row unaccounted for."""

from __future__ import annotations

from pathlib import Path

import pytest

from dice_ray.data.formats.base import ReaderBranch
from dice_ray.data.formats.columns import TextColumns
from dice_ray.data.formats.conll import ConllConfig, ConlluConfig
from dice_ray.data.formats.questions import _MISPLACED, SquadConfig
from dice_ray.data.formats.rows import JsonlConfig
from dice_ray.data.formats.sentences import ParallelConfig
from dice_ray.data.formats.tables import TablesConfig
from dice_ray.data.formats.texts import TreesConfig
from dice_ray.data.reading import gather
from dice_ray.data.records import QuestionRecord, TaggedRecord, TextRecord

pytestmark = pytest.mark.real_data

TAGGED: list[tuple[str, ReaderBranch, int, int, int]] = [
    ("ud14_chinese/zh-ud-train.conllu", ConlluConfig(), 3997, 98608, 15),
    ("ud14_chinese/zh-ud-dev.conllu", ConlluConfig(), 500, 12663, 15),
    ("ud14_chinese/zh-ud-test.conllu", ConlluConfig(), 500, 12012, 15),
    ("ud28_english_ewt/en_ewt-ud-dev.conllu", ConlluConfig(), 2001, 25149, 17),
    ("ud28_english_ewt/en_ewt-ud-test.conllu", ConlluConfig(), 2077, 25097, 17),
    ("ritter2011/pos.txt", ConllConfig(tags="plain"), 787, 15185, 49),
    ("ritter2011/ner.txt", ConllConfig(), 2394, 46469, 21),
    ("msra/msra_test_bio.txt", ConllConfig(), 3442, 172601, 7),
    ("msra/val/sentences.txt", ParallelConfig(), 3000, 142980, 7),
    ("weibo_ner/weiboNER_2nd_conll.train", ConllConfig(digit=True), 1350, 73778, 17),
    ("weibo_ner/weiboNER_2nd_conll.dev", ConllConfig(digit=True), 270, 14509, 17),
    ("wnut17/wnut17train.conll", ConllConfig(), 3394, 62730, 13),
    ("wnut17/emerging.dev.conll", ConllConfig(), 1009, 15733, 13),
]
"""File, reader, sentences, words, tags."""

TEXTS: list[tuple[str, ReaderBranch, int, int]] = [
    ("sst2/train.tsv", TablesConfig(quoting=False, columns=TextColumns()), 60614, 2),
    ("sst2/dev.tsv", TablesConfig(quoting=False, columns=TextColumns()), 6735, 2),
    ("sst2/test.tsv", TablesConfig(quoting=False, columns=TextColumns()), 872, 2),
    ("sst5/train_official_8544.txt", TreesConfig(), 8544, 5),
    ("sst5/dev.txt", TreesConfig(), 1101, 5),
    ("sst5/test.txt", TreesConfig(), 2210, 5),
    ("sst5/dev.txt", TreesConfig(classes="binary"), 872, 2),
    ("sst5/test.txt", TreesConfig(classes="binary"), 1821, 2),
    ("tnews/train_few_all.json", JsonlConfig(columns=TextColumns(label="label_desc")), 1185, 15),
    ("tnews/dev_few_all.json", JsonlConfig(columns=TextColumns(label="label_desc")), 1098, 15),
    ("tnews/test_public.json", JsonlConfig(columns=TextColumns(label="label_desc")), 2010, 15),
]
"""File, reader, texts, labels."""

QUESTIONS: list[tuple[str, ReaderBranch, int, int, int, int]] = [
    ("squad2/dev-v2.0.json", SquadConfig(), 11873, 5945, 0, 0),
    ("squad1/dev-v1.1.subset35.json", SquadConfig(), 5928, 0, 0, 0),
    ("quoref/quoref-dev.json", SquadConfig(several="spans"), 2418, 0, 221, 50),
    ("cmrc2018/cmrc2018_trial.json", SquadConfig(), 1002, 0, 0, 5),
    ("xquad/xquad.en.json", SquadConfig(), 1190, 0, 0, 0),
]
"""File, reader, questions, impossible ones, those of several spans, answers that do not stand at their offset."""


@pytest.mark.parametrize(("file", "reader", "sentences", "words", "tags"), TAGGED, ids=[row[0] for row in TAGGED])
def test_tagged_sentences(
    data_folder: Path, file: str, reader: ReaderBranch, sentences: int, words: int, tags: int
) -> None:
    records, report = gather(data_folder / file, lambda: reader.read(data_folder / file))
    found = [record for record in records if isinstance(record, TaggedRecord)]
    assert (len(found), report.rows) == (sentences, sentences)
    assert sum(len(record.words) for record in found) == words == sum(len(record.tags) for record in found)
    assert len({tag for record in found for tag in record.tags}) == tags


@pytest.mark.parametrize(("file", "reader", "texts", "labels"), TEXTS, ids=[f"{row[0]} {row[3]}" for row in TEXTS])
def test_texts(data_folder: Path, file: str, reader: ReaderBranch, texts: int, labels: int) -> None:
    records, report = gather(data_folder / file, lambda: reader.read(data_folder / file))
    found = [record for record in records if isinstance(record, TextRecord)]
    assert len(found) == texts == report.rows - sum(tally.count for tally in report.dropped.values())
    assert len({record.labels for record in found}) == labels


@pytest.mark.parametrize(
    ("file", "reader", "questions", "impossible", "several", "misplaced"), QUESTIONS, ids=[row[0] for row in QUESTIONS]
)
def test_questions(
    data_folder: Path, file: str, reader: ReaderBranch, questions: int, impossible: int, several: int, misplaced: int
) -> None:
    records, report = gather(data_folder / file, lambda: reader.read(data_folder / file))
    found = [record for record in records if isinstance(record, QuestionRecord)]
    spans = [span for record in found for answer in record.answers for span in answer]
    assert len(found) == questions == report.rows
    assert sum(record.impossible for record in found) == impossible
    assert sum(len(answer) > 1 for record in found for answer in record.answers) == several
    assert sum(span.start < 0 for span in spans) == misplaced
    assert (_MISPLACED in report.noted) == bool(misplaced)
    assert all(bool(record.answers) != record.impossible for record in found)
