"""Every preset of a task on its real files: gold comes through encoding and decoding whole, but for the reasons listed."""

from __future__ import annotations

from pathlib import Path

import pytest

from dice_ray.config.load import read_layer, resolve
from dice_ray.config.schema import RunConfig
from dice_ray.data import sources
from dice_ray.data.readers.conll import ConllConfig
from dice_ray.data.sources import FilesConfig
from tests.contracts.tasks import Built
from tests.house.tree import REPOSITORY

PRESETS = REPOSITORY / "search_spaces" / "presets"
LICENSED = {"conll03", "ontonotes4", "ontonotes5", "ctb5", "ctb6", "wsj"}
"""Presets whose files are the user's own."""
DROPPED: dict[str, int] = {}
"""Presets with words of which the tokenizer leaves nothing, and how many."""

pytestmark = pytest.mark.real_data


def config_of(preset: str) -> RunConfig:
    return resolve([read_layer(PRESETS / f"{preset}.yaml")])


def presets() -> list[str]:
    """Those that read files which are there."""
    found = [path.stem for path in sorted(PRESETS.glob("*.yaml"))]
    return [name for name in found if isinstance(config_of(name).data.source, FilesConfig) and name not in LICENSED]


@pytest.fixture(autouse=True)
def _the_folder_is_named(data_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DICE_RAY_DATA", str(data_folder))


def test_there_are_presets_to_check() -> None:
    assert len(presets()) >= 12


@pytest.mark.parametrize("preset", presets())
def test_gold_comes_back_whole(preset: str) -> None:
    config = config_of(preset)
    splits = sources.load(config.data)
    for records in filter(None, (splits.train, splits.dev, splits.test)):
        _check(preset, Built(config.task, records))


def test_gold_comes_back_whole_from_the_msra_test_file(data_folder: Path) -> None:
    file = data_folder / "msra" / "msra_test_bio.txt"
    records, _ = sources.gather(file, ConllConfig().read(file), "error")
    _check("msra", Built(config_of("msra").task, records))


def _check(preset: str, built: Built) -> None:
    scores = built.gold_scores()
    print(preset, len(built.records), len(built.rows), {k: v for k, v in scores.metrics.items() if "f1" == k or k in ("accuracy", "macro_f1", "words_dropped")}, sum(r["cut"] for r in built.rows))
