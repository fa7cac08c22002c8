"""Every shipped preset can be studied, and stands for published data only as long as its data are those."""

from __future__ import annotations

import pytest

from dice_ray import api
from dice_ray.api.presets import layers_of, validate
from dice_ray.config.load import resolve
from dice_ray.tuning.study_file import check_test

PRESETS = api.names()["presets"]
WITH_PART_OF_THE_DATA = {"qqp", "squad2_dev", "msra", "msra_mrc", "ritter2011_pos", "ritter2011_ner"}


def _reads_the_files(name: str) -> object:
    """MRPC and QQP have their columns named by the files' first lines."""
    return pytest.param(name, marks=pytest.mark.real_data) if name in ("mrpc", "qqp") else name


@pytest.mark.parametrize("preset", [_reads_the_files(name) for name in PRESETS])
def test_a_study_accepts_the_data(preset: str) -> None:
    """Finds a preset without a test split, whose studies end with an error."""
    check_test(validate(preset))


@pytest.mark.parametrize("preset", sorted(WITH_PART_OF_THE_DATA))
def test_a_part_of_published_data_stands_for_nothing(preset: str) -> None:
    assert validate(preset).tracking.published is None


@pytest.mark.real_data
def test_published_data_are_those_of_the_preset() -> None:
    assert validate("squad1").tags()["dice_ray.published"] == "squad1"
    assert validate("conll03_mrc", ["data.source.files.folder=/my/conll"]).tracking.published == "conll03"
    assert validate("mrpc", ["data.dev_share=0.2", "loss=dice"]).tracking.published == "mrpc"
    changed = (
        ["data.source.files.train=part.json"],
        ["data.source.files.test=null", "data.test_share=0.2"],
        ["data.source.synthetic.kind=pairs"],
    )
    for settings in changed:
        assert "dice_ray.published" not in validate("mrpc", settings).tags()
    whole = ["data.source.files.train=whole.txt", "tracking.published=msra"]
    assert resolve(layers_of("msra", whole)).tracking.published == "msra"
