"""Plans of studies that grow, and plans bound to the source of the user's losses."""

from __future__ import annotations

from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from dice_ray.config.load import Layer, values_layer
from dice_ray.errors import RunError
from dice_ray.files import unsealed_text
from dice_ray.settings import Flat
from dice_ray.tuning.ledger import Ledger, TrialOutcome, TrialSpec
from dice_ray.tuning.plan_file import read, store
from dice_ray.tuning.study import StudyPlan, Variant
from dice_ray.tuning.sweep import SweepPlan
from tests.tuning.test_plan import LAYERS, SWEEP, study


def test_a_resumed_study_runs_what_was_asked_last(tmp_path: Path) -> None:
    """Two arms with more seeds than all arms have: resumed, the seeds were run with every arm of the stored plan."""
    three = study(arms=study().arms | {"dice": {"loss": "dice"}}, seeds=(1, 2, 3))
    store(three, tmp_path)
    two = study(seeds=range(1, 14))
    store(two, tmp_path)
    resumed = read(tmp_path)
    assert isinstance(resumed, StudyPlan)
    assert [cell.id for cell in resumed.grid().cells] == [cell.id for cell in two.grid().cells]
    assert (set(resumed.arms), len(resumed.seeds)) == (set(three.arms), 13)
    assert store(resumed, tmp_path) == resumed, "also when it is resumed twice"
    assert isinstance(again := store(three, tmp_path), StudyPlan)
    assert len(again.grid().cells) == 9
    (tmp_path / "plan.yaml").write_text(unsealed_text((tmp_path / "plan.yaml").read_text()).partition("asked:")[0])
    assert isinstance(older := read(tmp_path), StudyPlan)
    assert len(older.grid().cells) == 39, "a plan of an earlier version, which asks for all that it holds"


def test_a_seed_is_counted_once() -> None:
    with pytest.raises(ValidationError, match="must be different seeds"):
        study(seeds=(1, 2, 1))


def test_variants_do_not_become_drawn_settings(tmp_path: Path) -> None:
    """A report would read the variants that have run as draws of a search."""
    variants = {name: Variant(layers=LAYERS) for name in ("01", "02")}
    of_data = study(variants=variants)
    assert study(variants=variants, variants_are="settings").changed(of_data) == [
        "several data sets, encoders or training sets then, drawn settings now"
    ]
    assert not study(variants=variants).changed(of_data)


FILES = {"train": "train.tsv", "test": "test.tsv", "reader": {"tables": {"quoting": False}}}


def of_files(folder: str, **changes: Any) -> StudyPlan:
    files = values_layer("preset", {"task": "sentence_pair", "data.source.files": {**FILES, "folder": folder}})
    return study(**({"layers": (files,), "digest": "d1"} | changes))


def ids(plan: SweepPlan | StudyPlan) -> list[str]:
    assert isinstance(plan, StudyPlan)
    return [cell.id for cell in plan.grid().cells]


def test_a_study_goes_on_where_its_files_were_moved(tmp_path: Path) -> None:
    """Each cell had another id in the new folder: the study was refused though the data were the same."""
    first = of_files("/old")
    assert ids(first)[0] == "ec71b4750c88", "as it was in earlier versions, whose studies go on too"
    store(first, tmp_path)
    stored = unsealed_text((tmp_path / "plan.yaml").read_text())
    (tmp_path / "plan.yaml").write_text(stored.replace("folders: {}\n", ""))
    more = store(of_files("/new", seeds=(1, 2, 3)), tmp_path)
    assert ids(more)[:4] == ids(first)
    assert more.base().data.source == of_files("/new").base().data.source
    assert read(tmp_path) == store(more, tmp_path) == more
    for folder in (".", "/new", "/old"):
        assert ids(store(of_files(folder), tmp_path)) == ids(first)
    for other in (of_files("/new", digest="d2"), of_files("/new", arms={"ce": {"data.source.files.folder": "/ce"}})):
        with pytest.raises(RunError, match="holds another study"):
            store(other, tmp_path)


def test_the_files_of_each_variant_may_be_moved(tmp_path: Path) -> None:
    """Finds a folder that is taken for that of another variant."""

    def of_two(one: str, two: str) -> StudyPlan:
        parts = {
            name: Variant(layers=of_files(folder).layers, digest=name) for name, folder in (("1", one), ("2", two))
        }
        return study(variants=parts, layers=of_files(one).layers)

    first = store(of_two("/a", "/b"), tmp_path)
    for folders in (("/b", "/b"), ("/b", "/a"), ("/a", "/b"), ("/c", "/c")):
        assert ids(store(of_two(*folders), tmp_path)) == ids(first)


LOSS = """
from dice_ray.losses.cross_entropy import CrossEntropyLoss

def build(facts, factor=1):
    return Mine(facts.link)

class Mine(CrossEntropyLoss):
    def losses(self, items):
        return super().losses(items) * 1
"""


@pytest.mark.parametrize(
    "arm", [{"loss": "custom", "loss.custom.target": "mine.py:build"}, {"loss": {"custom": {"target": "mine:build"}}}]
)
def test_a_study_is_bound_to_the_source_of_a_custom_loss(tmp_path: Path, arm: Flat) -> None:
    """A rewritten loss left the ids of its cells as they were: the scores of the old one were reported as its own."""
    file = tmp_path / "mine.py"
    file.write_text(LOSS)
    plan = study(arms=study().arms | {"mine": arm})
    first = plan.with_contents()
    assert list(first.code) == [f"{file}:build"]
    assert first.identity("ce", 1) == study().identity("ce", 1), "the other cells are what they were"
    stored = store(first, tmp_path / "study")
    assert f"'{file}:build'" in str(stored.model_dump()["arms"])
    (tmp_path / "moved").mkdir()
    (tmp_path / "moved/mine.py").write_text(LOSS)
    with chdir(tmp_path / "moved"):
        assert study(arms=plan.arms | {"mine": arm}).with_contents().identity("mine", 1) == first.identity("mine", 1)
        stored.check_code(stored.code)  # the address is absolute
    file.write_text(LOSS.replace("items) * 1", "items) * 2"))
    second = plan.with_contents()
    assert second.identity("ce", 1) == first.identity("ce", 1)
    assert second.identity("mine", 1) != first.identity("mine", 1)
    with pytest.raises(RunError, match=r"holds another study of that name \(of preset; changed: arm mine\)"):
        store(second, tmp_path / "study")
    with pytest.raises(RunError, match=rf"study must be resumed with the code .* {file}:build was changed \(digest"):
        read(tmp_path / "study").check_code(stored.code)
    assert store(study().with_contents(), tmp_path / "study").code == first.code, "an arm that is not asked for"
    older = plan.model_copy(update={"code": {}})
    older.check_code([f"{file}:build"])
    assert older.identity("mine", 1) not in (first.identity("mine", 1), second.identity("mine", 1))


def test_a_sweep_is_bound_to_the_source_of_its_loss_and_stores_absolute_addresses(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(LOSS)
    own = {"loss": {"custom": {"target": "mine:build"}}, "task": {"sentence_pair": {"score": "mine.py:Mine"}}}
    layers = (*LAYERS, Layer("--set", own))
    plan = SWEEP.model_validate(SWEEP.model_dump() | {"layers": layers, "space": "mine.py:f", "sampler": "mine:g"})
    assert (plan.space, plan.sampler, plan.scheduler) == (f"{tmp_path}/mine.py:f", f"{tmp_path}/mine.py:g", "asha")
    assert f"'{tmp_path}/mine.py:build'" in str(plan.layers)
    plan = plan.with_code([plan.base()])
    assert set(plan.code) == {f"{tmp_path}/mine.py:build", f"{tmp_path}/mine.py:Mine"}
    assert store(plan, tmp_path / "sweep") == read(tmp_path / "sweep") == plan
    (tmp_path / "mine.py").write_text("def build(facts): pass\nclass Mine: pass")
    with pytest.raises(RunError, match="sweep must be resumed with the code that it was started with"):
        read(tmp_path / "sweep").check_code(plan.code)


def ended(ledger: Ledger, arm: str, seed: int, score: float | None, variant: str | None = None) -> str:
    """A cell that has ended; without a score it failed."""
    spec = TrialSpec(id=f"{arm}{seed}{variant}", params={}, seed=seed, arm=arm, variant=variant)
    ledger.append(spec)
    curve = () if score is None else ((1, score),)
    ledger.append(TrialOutcome(id=spec.id, state="done" if curve else "failed", curve=curve))
    return spec.id


def test_the_best_arm_is_that_of_the_highest_mean_of_the_asked_cells(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl")
    cells = (("dice", 1, 0.5), ("dice", 2, 0.75), ("focal", 1, 0.875), ("focal", 2, 0.125), ("focal", 3, None))
    ids = [ended(ledger, *cell) for cell in cells]
    ended(ledger, "of_an_earlier_call", 1, 1.0)
    assert study().best_arm(ledger, [*ids, "not started"]) == (0.625, "dice", 2)
    assert study(controls={"dice": "focal"}).best_arm(ledger, ids) == (0.5, "focal", 2)
    assert study().best_arm(ledger, ids[4:]) is None


def test_scores_on_different_data_are_not_compared(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl")
    ids = [ended(ledger, "dice", 1, 0.5, variant) for variant in ("mrpc", "qqp")]
    assert study().best_arm(ledger, ids[:1]) == (0.5, "dice", 1)
    assert study().best_arm(ledger, ids) is None


def test_a_failed_cell_does_not_count(tmp_path: Path) -> None:
    """A cell that failed after an evaluation made its arm the best one."""
    ledger = Ledger(tmp_path / "ledger.jsonl")
    ids = [ended(ledger, "plain", 1, 0.5), "dice1"]
    ledger.append(TrialSpec(id="dice1", params={}, seed=1, arm="dice"))
    ledger.append(TrialOutcome(id="dice1", state="failed", curve=((1, 0.9),)))
    assert study().best_arm(ledger, ids) == (0.5, "plain", 1)
