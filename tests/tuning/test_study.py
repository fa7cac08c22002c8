"""Studies: plans that grow, the cells that a ledger lacks, each once, and what is scored on test."""

from __future__ import annotations

import json
import os
import signal
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

import dice_ray
from dice_ray.cli.screen import TerminalScreen
from dice_ray.config.load import Layer, resolve, values_layer
from dice_ray.errors import RunError
from dice_ray.files import unsealed_text
from dice_ray.run.driver import Driver
from dice_ray.settings import Flat
from dice_ray.tracking import reader
from dice_ray.tuning import plan_file, runner
from dice_ray.tuning.cells import Variant
from dice_ray.tuning.estimate import estimate
from dice_ray.tuning.ledger import History, Ledger, TrialOutcome, ledger_in
from dice_ray.tuning.looks import is_in_looks, up_to_look, with_control_again
from dice_ray.tuning.plan_file import read, store
from dice_ray.tuning.runner import _once_each
from dice_ray.tuning.study import StudyPlan
from dice_ray.tuning.sweep import SweepPlan
from tests.tuning.test_plan import LAYERS, SWEEP, study
from tests.tuning.trials import note, pairs_in


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


def of_draws(num: int, *, crossed: bool = False, **changes: Any) -> StudyPlan:
    """A plan of settings, each with a seed of its own, in which dice has a parameter of its own."""
    variants = {
        f"{number:02d}": Variant(
            layers=(*LAYERS, values_layer("variant", {"training.lr": number / 1000})),
            seed=None if crossed else number,
            arms={"dice": {"loss.dice.gamma": number / 10}} if "dice" in changes.get("arms", ()) else {},
        )
        for number in range(1, num + 1)
    }
    seeds = range(1, num + 1)
    return study(**({"variants": variants, "variants_are": "settings", "seeds": seeds} | changes))


def test_each_setting_is_run_with_its_own_seed(tmp_path: Path) -> None:
    """Finds settings by seeds, a seed that is not that of the crossed cell, and a study that a smaller one changes."""
    two, three = of_draws(2), of_draws(3)
    assert [(cell.variant, cell.seed) for cell in two.grid().cells if cell.arm == "ce"] == [("01", 1), ("02", 2)]
    crossed = of_draws(2, crossed=True)
    assert len(crossed.grid().cells) == 2 * len(two.grid().cells)
    assert set(ids(two)) < set(ids(crossed))
    assert crossed.changed(two) == ["drawn settings with one seed each then, drawn settings now"]
    assert set(ids(two)) < set(ids(store(three, tmp_path)))
    assert ids(store(two, tmp_path)) == ids(two)
    assert ids(store(three, tmp_path)) == ids(three)


def test_a_dry_run_rehearses_few_of_many_settings(tmp_path: Path) -> None:
    """Each setting takes another time, so that an estimate of 30 took seven minutes."""
    batches = {f"{n}": Variant(layers=(*LAYERS, values_layer("v", {"training.batch_size": n}))) for n in (8, 32, 16)}
    plan = study(variants=batches, variants_are="settings")
    ledger = ledger_in(tmp_path)
    assert [config.training.batch_size for config in plan.samples(ledger)] == [32, 8]
    of_data = plan.model_copy(update={"variants_are": "data"})
    assert len(of_data.samples(ledger)) == len(of_data.grid().cells)


def test_what_an_arm_drew_for_itself_stays_where_it_is_not_asked_for(tmp_path: Path) -> None:
    """Its cells would get other ids, and a study that asks for it again would run them again."""
    with_dice = study().arms | {"dice": {"loss": "dice"}}
    whole = of_draws(2, arms=with_dice)
    gammas = [cell.params.get("loss.dice.gamma") for cell in whole.grid().cells if cell.arm == "dice"]
    assert gammas == [0.1, 0.2]
    store(whole, tmp_path)
    store(of_draws(2), tmp_path)
    assert isinstance(stored := read(tmp_path), StudyPlan)
    assert ids(stored.whole()) == ids(whole)


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


def test_an_arm_is_bound_to_its_extra_training_records(tmp_path: Path) -> None:
    """Finds an edited file whose old scores are reported as its own; and ids that change where no arm has one."""
    extra, arms = tmp_path / "more.tsv", study().arms | {"more": {"data.source.files.extra": "more.tsv"}}
    for file in (extra, tmp_path / "train.tsv", tmp_path / "test.tsv"):
        file.write_text("sentence1\tsentence2\tlabel\na\tb\t1\n")
    plan = of_files(str(tmp_path), arms=arms)
    first = plan.with_contents()
    assert list(first.extra) == ["arm more"]
    assert first.identity("ce", 1) == plan.identity("ce", 1)
    stored = store(first, tmp_path / "study")
    assert read(tmp_path / "study") == stored
    stored.check(tmp_path)
    extra.write_text("sentence1\tsentence2\tlabel\nc\td\t1\n")
    second = plan.with_contents()
    assert second.identity("ce", 1) == first.identity("ce", 1)
    assert second.identity("more", 1) != first.identity("more", 1)
    with pytest.raises(RunError, match=r"holds another study of that name .*; changed: arm more"):
        store(second, tmp_path / "study")
    with pytest.raises(RunError, match=r"whose arm more has data\.source\.files\.extra, must have the data"):
        stored.check(tmp_path)


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
    plan = plan.with_contents()
    assert set(plan.code) == {f"{tmp_path}/mine.py:build", f"{tmp_path}/mine.py:Mine"}
    assert store(plan, tmp_path / "sweep") == read(tmp_path / "sweep") == plan
    (tmp_path / "mine.py").write_text("def build(facts): pass\nclass Mine: pass")
    with pytest.raises(RunError, match="sweep must be resumed with the code that it was started with"):
        read(tmp_path / "sweep").check_code(plan.code)


def test_the_best_arm_is_that_of_the_highest_mean_of_the_asked_cells(tmp_path: Path) -> None:
    """Finds a cell that failed after an evaluation and made its arm the best, and scores on different data compared."""
    ledger = Ledger(tmp_path / "ledger.jsonl")
    cells = (("dice", 1, 0.5), ("dice", 2, 0.75), ("focal", 1, 0.875), ("focal", 2, 0.125))
    ids = [note(ledger, f"{arm}{seed}", score, arm=arm, seed=seed) for arm, seed, score in cells]
    ids += [note(ledger, "focal3", 1.0, "failed", arm="focal", seed=3)]
    note(ledger, "of an earlier call", 1.0, arm="earlier")
    assert study().best_arm(ledger, [*ids, "not started"]) == (0.625, "dice", 2)
    assert study(controls={"dice": "focal"}).best_arm(ledger, ids) == (0.5, "focal", 2)
    assert study().best_arm(ledger, ids[4:]) is None
    assert study().best_arm(ledger, [*ids, note(ledger, "elsewhere", arm="dice", variant="qqp")]) is None


def test_cells_that_failed_or_never_ended_are_missing(layers: tuple[Layer, ...]) -> None:
    plan = StudyPlan(name="study", layers=layers, arms={"ce": {}}, baseline="ce", seeds=(1, 2, 3, 4))
    cells = done, failed, begun, new = plan.grid().cells
    history = History({cell.id: cell for cell in (done, failed, begun)})
    history.outcomes = {done.id: TrialOutcome(id=done.id, state="done")}
    history.outcomes |= {failed.id: TrialOutcome(id=failed.id, state="failed", failure="no memory")}
    assert plan._missing(cells, history) == [failed, begun, new]


def test_what_all_variants_read_is_said_once() -> None:
    """Finds a study over drawn settings, all of one data set, that begins with the same lines for each of them."""
    text = "data: 9 train\n  1 dropped"
    assert _once_each({"01": text, "02": text}) == _once_each({None: text}) == ["data: 9 train", "  1 dropped"]
    several = _once_each({"tweets": text, "news": "data: 8 train", "tweets again": text})
    assert several == ["tweets, tweets again: data: 9 train", "  1 dropped", "news: data: 8 train"]
    assert _once_each({"tweets": "", "news": "Warning: few"}) == ["news: Warning: few"]


@pytest.mark.usefixtures("uri")
def test_cells_that_are_done_are_not_run_again_where_the_files_were_moved(tmp_path: Path) -> None:
    """They have the ids of the folder that the study was started with."""
    plans = {}
    for folder in (tmp_path / "old", tmp_path / "new"):
        layers = pairs_in(folder, "train", "test")
        digest = resolve(layers).splits().digest
        plans[folder.name] = StudyPlan(
            name="study", layers=layers, arms={"ce": {}}, baseline="ce", seeds=(1,), digest=digest
        )
    plan_file.store(plans["old"], folder := tmp_path / "study")
    ledger = Ledger(folder / "ledger.jsonl")
    (cell,) = plans["old"].grid().cells
    ledger.append(cell)
    ledger.append(TrialOutcome(id=cell.id, state="done", curve=((5, 0.75),), metrics=({"dev/f1": 0.75},)))
    with pytest.raises(RunError, match="has ended, and nothing is left to estimate"):
        estimate(plans["new"], folder, Driver())
    progress = runner.run(plans["new"], folder, Driver())
    assert (progress.done, progress.total) == (1, 1)
    assert list(Ledger(folder / "ledger.jsonl").specs) == [cell.id]


@pytest.mark.usefixtures("uri")
def test_what_earlier_calls_read_of_other_variants_stays_with_the_study(
    tmp_path: Path, layers: tuple[Layer, ...]
) -> None:
    """The report had no sizes and no warning of few items for the variants of an earlier call."""
    folder = tmp_path / "study"
    for names in ({"a": 40, "b": 60}, {"b": 60, "c": 80}):
        variants = {
            name: Variant(layers=(*layers, values_layer(name, {"data.source.synthetic.size": size})))
            for name, size in names.items()
        }
        plan = StudyPlan(name="study", layers=layers, variants=variants, arms={"ce": {}}, baseline="ce", seeds=(1,))
        digests: dict[str | None, str] = {name: plan.base(name).splits().digest for name in names}
        plan_file.store(plan := plan.with_digests(digests), folder)
        ledger = Ledger(folder / "ledger.jsonl")
        for cell in plan._missing(plan.grid().cells, ledger):
            ledger.append(cell)
            ledger.append(TrialOutcome(id=cell.id, state="done", curve=((5, 0.75),), metrics=({"dev/f1": 0.75},)))
        assert runner.run(plan, folder, Driver()).is_finished
    (run,) = reader.read("study").query("kind == 'study'").to_dict("records")
    (artifact,) = tmp_path.glob("mlartifacts/*/artifacts/data.json")
    assert list(json.loads(artifact.read_text())) == ["a", "b", "c"]
    assert [line.partition(":")[0] for line in run["tags.few_items"].splitlines()] == ["a", "b", "c"]


@pytest.mark.ray
@pytest.mark.usefixtures("on_kept_ray", "uri")
def test_a_study_runs_what_is_missing_and_retries_what_failed(tmp_path: Path, layers: tuple[Layer, ...]) -> None:
    arms = {"ce": {"loss": "cross_entropy"}, "focal": {"loss": "focal"}}
    digest = resolve(layers).splits().digest
    plan = StudyPlan(name="study", layers=layers, arms=arms, baseline="ce", seeds=(1, 2), digest=digest)
    done, failed, *missing = (cell.id for cell in plan.grid().cells)
    folder = tmp_path / "study"
    folder.mkdir()
    ledger = Ledger(folder / "ledger.jsonl")
    for cell in plan.grid().cells[:2]:
        ledger.append(cell)
    there = {"test/f1": 0.125, "test/collapsed": 1.0}
    earlier = TrialOutcome(id=done, state="done", curve=((5, 0.75),), metrics=({"dev/f1": 0.75},), test=there)
    ledger.append(earlier)
    ledger.append(TrialOutcome(id=failed, state="failed", failure="no memory"))

    progress = runner.run(plan, folder, Driver(num_cpus=2))
    assert (progress.done, progress.failed, progress.total) == (4, 0, 4)
    ledger = Ledger(folder / "ledger.jsonl")
    assert ledger.outcomes[done] == earlier
    assert {path.name for path in (folder / "trials").iterdir()} == {failed, *missing}

    rows = reader.read("study").set_index("id")
    cells = rows[rows["kind"] == "cell"]
    there_are = sorted(zip(cells["arm"], cells["seed"], strict=True))
    assert there_are == [("ce", 1), ("ce", 2), ("focal", 1), ("focal", 2)]
    assert (cells["state"] == "done").all()
    assert rows.loc[done, "metrics.test/f1"] == 0.125
    assert rows.loc[done, "tags.collapsed"] == "true"
    assert rows.loc[failed, "metrics.test/f1"] == ledger.outcomes[failed].test["test/f1"]
    assert not rows.loc[failed, "tags.failure"]
    assert rows.loc["study", "tags.baseline"] == "ce"


STUDY = """
ARMS = {"ce": {}, "asymmetric": {"loss": "asymmetric"}}
BASELINE = "ce"
VARIANTS = {
    "fewer": {"data.imbalance": "drop_negative", "task.sentence_pair.link": "sigmoid"},
    "as read": {},
    "more": {"data.imbalance": "add_positive"},
}
"""


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.usefixtures("on_kept_ray", "uri")
def test_variants_are_run_on_their_own_data_and_what_does_not_go_together_is_left_out(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    two = STUDY.replace('    "more": {"data.imbalance": "add_positive"},\n', "")
    quick = {"data.source.synthetic.size": 200, "training.epochs": 1}
    (tmp_path / "mine.py").write_text(two)
    dice_ray.ablate("mine.py", settings=quick, seeds=1, show=TerminalScreen)
    said = capfd.readouterr().out
    assert "fewer: data: 40 train, 100 dev, 100 test records\n  train: 20 negatives and 20 positives by" in said
    assert "as read: data: 200 train, 100 dev, 100 test records" in said
    assert "left out: asymmetric on as read, because loss: must take the softmax link" in said

    before = (tmp_path / "dice_ray_runs/mine/ledger.jsonl").read_text()
    (tmp_path / "mine.py").write_text(STUDY)
    study = dice_ray.ablate("mine.py", settings=quick, seeds=1)
    after = (tmp_path / "dice_ray_runs/mine/ledger.jsonl").read_text()
    assert after.startswith(before), "a variant added later costs itself alone"
    assert (before.count('"end"'), after.count('"end"')) == (3, 4)

    cells = study.frame[study.frame["kind"] == "cell"]
    there_are = sorted(zip(cells["tags.variant"], cells["arm"], cells["params.data.imbalance"], strict=True))
    assert there_are == [
        ("as read", "ce", "none"),
        ("fewer", "asymmetric", "drop_negative"),
        ("fewer", "ce", "drop_negative"),
        ("more", "ce", "add_positive"),
    ]
    assert cells["metrics.test/f1"].notna().all()
    (file,) = tmp_path.rglob("artifacts/left_out.json")
    assert [(each["variant"], each["arm"]) for each in json.loads(file.read_text())] == [
        ("as read", "asymmetric"),
        ("more", "asymmetric"),
    ]
    assert sorted(dice_ray.evaluate("mine/fewer/asymmetric/1").scores.metrics)[0] == "accuracy"


DRAWN = """
def space(trial):
    trial.suggest_float("training.lr", 1e-3, 4e-3, log=True)

ARMS = {"ce": {}, "dice": {"loss": "dice"}}
BASELINE = "ce"
SPACE = space
"""


@pytest.mark.ray
@pytest.mark.usefixtures("on_kept_ray", "uri")
def test_drawn_settings_are_reported_as_one_comparison(tmp_path: Path) -> None:
    """The tag gets from the study's file to the report, or each setting is taken for a data set."""
    (tmp_path / "drawn.py").write_text(DRAWN)
    settings = {"data.source.synthetic.size": 200, "training.epochs": 1}
    study = dice_ray.ablate("drawn.py", settings=settings, num_settings=2, budget=1)
    cells = study.frame[study.frame["kind"] == "cell"]
    assert cells.groupby("tags.variant")["params.training.lr"].nunique().to_dict() == {"01": 1, "02": 1}
    assert cells["params.training.lr"].nunique() == 2
    assert cells.groupby("tags.variant")["seed"].agg(list).to_dict() == {"01": [1, 1], "02": [2, 2]}
    tags = study.frame.set_index("id").loc["drawn"]
    assert (tags["tags.variants_are"], tags["tags.budget"]) == ("settings", "1")
    assert tags["tags.command"].endswith(" --name drawn --budget 1")
    assert len(study.headlines) == 1
    assert "at_equal_budget" in {table.name for table in study.report().tables}
    with pytest.raises(RunError, match="drawn has none"):
        _ = study.best


def test_a_study_in_looks_asks_for_the_arms_that_are_open(tmp_path: Path) -> None:
    """Finds a look that runs later seeds, a settled arm that goes on, and a baseline or a control that does not."""
    plan = with_control_again(study(seeds=range(1, 13), looks=(5, 10, 12)))
    first = up_to_look(plan, None)
    assert first is not None
    seeds = {cell.seed for cell in first.grid().cells if cell.arm == "control_again"}
    assert (len(first.grid().cells), seeds) == (15, {10_001, 10_002, 10_003, 10_004, 10_005})
    assert plan.identity("control_again", 10_001) == plan.identity("ce", 10_001), "the baseline, but for its seed"
    second = up_to_look(first, ["focal"])
    assert second is not None
    assert len(second.grid().cells) == 30
    arms = study().arms | {"dice": {"loss": "dice"}}
    alone = up_to_look(study(arms=arms, seeds=range(1, 13), looks=(5, 10, 12)), None)
    assert alone is not None
    after = up_to_look(alone, ["dice"])
    assert after is not None
    assert {cell.arm for cell in after.grid().cells} == {"ce", "dice"}
    assert up_to_look(first, []) is None
    last = up_to_look(second, ["focal"])
    assert last is not None
    assert up_to_look(last, ["focal"]) is None
    store(alone, tmp_path)
    fewer = store(study(seeds=range(1, 13), looks=(5, 10, 12)), tmp_path)
    again = up_to_look(fewer, None)
    assert again is not None
    assert {cell.arm for cell in again.grid().cells} == {"ce", "focal"}, "what is resumed was asked for last"
    assert up_to_look(again, ["dice"]) is None, "open, and not asked for"
    assert is_in_looks(fewer)
    assert not is_in_looks(store(study(seeds=range(1, 31), looks=(30,)), tmp_path)), "resumed, they would never run"


def test_what_was_declared_before_the_first_run_holds(tmp_path: Path) -> None:
    """Finds looks, a difference that matters, a threshold or a budget that are chosen after results were seen."""
    plan = study(seeds=range(1, 11), looks=(5, 10), care=1.0, threshold="tuned", budget=4)
    store(plan, tmp_path)
    for change in ({"looks": (5, 10, 15)}, {"care": 0.5}, {"threshold": "untuned"}, {"budget": 8}):
        with pytest.raises(RunError, match=f"{next(iter(change))} .* then, .* now, which holds from the first run on"):
            store(plan.model_copy(update=change), tmp_path)
    more = store(study(seeds=range(1, 31), looks=(30,)), tmp_path)
    assert isinstance(more, StudyPlan)
    declared = (more.looks, more.care, more.threshold, more.budget)
    assert (len(more.seeds), *declared) == (30, (5, 10), 1.0, "tuned", 4)
    for num, looks in ((6, (6,)), (2, (8,))):
        store(study(looks=(num,), seeds=range(1, num + 1)), tmp_path / f"{num}")
        grown = store(study(seeds=range(1, 9), looks=(8,)), tmp_path / f"{num}")
        assert grown.looks == looks, "what is added to seeds that could show something is judged as added"


LOOKS = """
ARMS = {"ce": {}, "twin": {"loss": "weighted_cross_entropy", "loss.weighted_cross_entropy.weighting.lg.k": 1e9}}
BASELINE = "ce"
"""


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.usefixtures("on_kept_ray", "uri")
def test_a_study_that_ends_between_two_looks_goes_the_same_way(tmp_path: Path) -> None:
    """Finds a look that is judged by other runs after an interruption, and runs that are made twice."""
    (tmp_path / "mine.py").write_text(LOOKS)
    quick: Flat = {"data.source.synthetic.size": 200, "training.epochs": 1}

    def stopping(counts: Any) -> None:
        if getattr(counts, "done", 0) >= 10:
            os.kill(os.getpid(), signal.SIGINT)

    looks: dict[str, Any] = {"settings": quick, "until_settled": True, "seeds": 7}
    whole = dice_ray.ablate("mine.py", name="whole", **looks)
    with pytest.raises(KeyboardInterrupt):
        dice_ray.ablate("mine.py", name="cut", callbacks=[stopping], **looks)
    cut = dice_ray.resume("cut")
    assert cut.is_finished
    made = [
        sorted(zip(each.frame["arm"], each.frame["seed"], each.frame["metrics.test/f1"], strict=True), key=str)
        for each in (whole, cut)
    ]
    assert str(made[0]) == str(made[1])
    assert cut.headlines == whole.headlines
    text = (tmp_path / "dice_ray_runs/cut/ledger.jsonl").read_text()
    assert text.count('"end"') == (whole.frame["kind"] == "cell").sum()
