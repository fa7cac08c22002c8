"""The ids of cells, by which a study is continued, and the keys of the cache."""

from __future__ import annotations

from functools import partial

from dice_ray import api
from dice_ray.api.library import read_study
from dice_ray.api.presets import layers_of
from dice_ray.tuning.cells import Variant
from dice_ray.tuning.study import StudyPlan
from dice_ray.tuning.study_file import layers_by_variant, with_draws
from search_spaces.draws import draws
from tests.golden.conftest import Golden


def _cells(study: str, *data: str) -> dict[str, str]:
    file = read_study(study)
    if file.space:
        file = with_draws(study, file, draws, 12, None, None, crossed=True)
    layers = {
        name: tuple(found)
        for name, (_, found, _) in layers_by_variant(data, partial(layers_of, settings=()), (), file.variants).items()
    }
    plan = StudyPlan(
        name=study,
        layers=next(iter(layers.values())),
        arms=file.arms,
        baseline=file.baseline,
        seeds=(1,),
        variants={name: Variant(layers=found, digest=f"of {name}") for name, found in layers.items() if name},
        variants_are=file.variants_are,
        digest="of the data",
    )
    return {" on ".join(filter(None, [cell.arm, cell.variant])): cell.id for cell in plan.grid().cells}


def test_cells(golden: Golden) -> None:
    """With a fixed digest in place of that of the data."""
    names = api.names()
    studies = {study: read_study(study).data for study in names["studies"]}
    found = {f"{study}, {', '.join(data)}": _cells(study, *data) for study, data in studies.items()}
    found["each preset"] = {
        preset: next(iter(_cells("loss_comparison", preset).values())) for preset in names["presets"]
    }
    golden("cells.json", found)
