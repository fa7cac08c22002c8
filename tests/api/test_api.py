"""The product from Python: a sweep, a study that grows, and their reports."""

from __future__ import annotations

import csv
import io
import json
import shutil
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch

import dice_ray
from dice_ray import api
from dice_ray.api import Result
from dice_ray.api.presets import layers_of
from dice_ray.cli.screen import TerminalScreen
from dice_ray.config.load import Layer
from dice_ray.data import sources
from dice_ray.errors import ConfigError, DataError, DiceRayError, InputError, RunError, UnknownNameError
from dice_ray.files import lock, runs_folder
from dice_ray.run import build
from dice_ray.run.driver import Event
from dice_ray.run.names import TRAIN_EXPERIMENT
from dice_ray.run.rehearsal import _NUM_STEPS
from dice_ray.tracking import schema
from dice_ray.tracking.entries import Open
from dice_ray.tracking.reader import curves, read, texts
from dice_ray.tracking.spool import Spool
from dice_ray.tracking.store import quiet_client
from dice_ray.training.loop import Evaluation
from dice_ray.tuning import plan_file
from dice_ray.tuning.ledger import ledger_in
from dice_ray.tuning.study import StudyPlan
from dice_ray.tuning.sweep import SweepPlan
from tests.analysis.test_others import table
from tests.kept_ray import KeptRay
from tests.standing import standing
from tests.tracking.stores import copied
from tests.tuning.trials import note

if TYPE_CHECKING:
    import pandas as pd
    from mlflow.entities import Run

pytestmark = pytest.mark.usefixtures("uri")  # to make a store takes as long as a short run

QUICK = {"data.source.synthetic.size": 100, "training.epochs": 1, "training.evaluations": 2}
PRESET = """
task: sentence_pair
data:
  source:
    files:
      folder: data
      train: train.tsv
      reader: {tables: {quoting: false}}
"""
STUDY = """
BASELINE = "plain"
ARMS = {
    "plain": {"loss": "cross_entropy"},
    "strong": {"loss": "focal", "loss.focal.gamma": 4, "loss.focal.weighting": "inverse"},
}
"""


class Shown(AbstractContextManager["Shown"]):
    """A screen that keeps the evaluations, and the lines of texts."""

    def __init__(self, told: list[Evaluation], lines: list[str] | None = None) -> None:
        self.told, self.lines = told, [] if lines is None else lines

    def __exit__(self, *failure: object) -> None: ...

    def show(self, event: Event) -> None:
        if isinstance(event, Evaluation):
            self.told.append(event)
        elif isinstance(event, str):
            self.lines += event.splitlines()


def test_settings_are_written_as_a_mapping_or_as_assignments() -> None:
    mapping = api.validate("synthetic_pairs", {"loss": "focal", "loss.focal.gamma": 3})
    assert mapping == api.validate("synthetic_pairs", ["loss.focal.gamma=3"])


def test_a_file_without_a_function_is_no_space() -> None:
    with pytest.raises(InputError, match=r"must be a function, as mine.py:FUNCTION, got mine.py$"):
        dice_ray.tune("synthetic_pairs", space="mine.py")


@pytest.mark.parametrize(("seeds", "top"), [(1, None), (None, 2)])
def test_a_sweep_goes_on_with_no_fewer_reruns(seeds: int | None, top: int | None) -> None:
    layers = (Layer("preset", {"task": "sentence_pair", "data": {"source": "synthetic"}}),)
    plan_file.store(
        SweepPlan(name="sw", layers=layers, space="a:b", trials=1, seeds=2, top=3), Path("dice_ray_runs/sw")
    )
    with pytest.raises(InputError, match=rf"must be at least those of sw, 2 and 3, got {seeds or 2} and {top or 3}$"):
        api.resume("sw", seeds=seeds, top=top)


def test_a_renamed_folder_is_resumed_under_its_own_name() -> None:
    """It was refused when all was loaded, with a message about MLflow's experiment that named no remedy."""
    layers = (Layer("preset", {"task": "sentence_pair", "data": {"source": "synthetic"}}),)
    plan_file.store(SweepPlan(name="sw", layers=layers, space="a:b", trials=1), Path("dice_ray_runs/new"))
    with pytest.raises(InputError, match=r"the sweep that it holds, sw, .* `dice-ray tune PRESET --warm-start new`"):
        api.resume("new")
    study = StudyPlan(name="st", layers=layers, arms={"a": {}}, baseline="a", seeds=(1,))
    plan_file.store(study, Path("dice_ray_runs/other"))
    with pytest.raises(InputError, match=r"the study that it holds, st, .*: rename the folder back to resume it$"):
        api.resume("other")


def test_a_wrong_name_is_named_though_the_configuration_of_another_run_is_damaged() -> None:
    """The error was that of the other run's file."""
    config = Path("dice_ray_runs/runs/config.yaml")
    config.parent.mkdir(parents=True)
    config.write_text("task: [")
    with pytest.raises(UnknownNameError, match=r"no sweep, study or run named 'rums'; did you mean 'runs'"):
        api.resume("rums")


def test_two_variants_of_one_name_and_sweeps_for_several_are_refused() -> None:
    with pytest.raises(InputError, match="and two are 'synthetic_pairs'"):
        dice_ray.ablate("loss_comparison", ["synthetic_pairs", "synthetic_pairs"])
    with pytest.raises(InputError, match="give one --data and one --encoder"):
        dice_ray.ablate("loss_comparison", ["synthetic_pairs", "mrpc"], tuned_from=["sweep"])
    with pytest.raises(InputError, match="give one --data and one --encoder"):
        dice_ray.ablate("loss_comparison", encoders=["tiny", "minilm"], tuned_from=["sweep"])
    with pytest.raises(InputError, match="runs all arms with the same settings: give no --tuned-from"):
        dice_ray.ablate("tuning_budget", tuned_from=["sweep"])
    with pytest.raises(InputError, match="runs all arms with the same settings: give no --tune-shared"):
        dice_ray.ablate("tuning_budget", tune_shared="sweep")


def test_data_sets_of_one_name_are_inspected_under_different_ones() -> None:
    for folder in ("a", "b"):
        Path(folder).mkdir()
        Path(folder, "mine.yaml").write_text(api.resolved_yaml("synthetic_pairs", QUICK))
    assert [found.name for found in api.inspect(["a/mine.yaml", "b/mine.yaml"])] == ["a/mine", "b/mine"]


def test_a_name_in_place_of_a_list_and_no_seeds_are_refused() -> None:
    """A text was read as the list of its letters: "There is no arm named 'd'"."""
    with pytest.raises(InputError, match=r"arms must be a list, as \['dice'\], got 'dice'"):
        dice_ray.ablate("loss_comparison", arms="dice")
    with pytest.raises(InputError, match="objectives must be a list"):
        dice_ray.tune(objectives="f1")
    with pytest.raises(InputError, match="seeds must be at least 1 and less than 10000, got 0"):
        dice_ray.ablate("loss_comparison", seeds=0)
    with pytest.raises(InputError, match=r"the arms must hold the baseline .*: add 'cross_entropy'"):
        dice_ray.ablate("loss_comparison", arms=["dice"])
    with pytest.raises(ConfigError, match=r"trials: .* 1, got 0"):
        dice_ray.tune("synthetic_pairs", trials=0)
    with pytest.raises(ConfigError, match=r"trial_timeout: .* 0, got 0"):
        dice_ray.ablate("loss_comparison", "synthetic_pairs", trial_timeout=0)
    with pytest.raises(InputError, match=r"callbacks must be a list of functions, as \[print\]"):
        dice_ray.train("synthetic_pairs", callbacks=print)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="settings must be a list, as"):
        dice_ray.train("synthetic_pairs", "training.epochs=2", loss="dice")
    with pytest.raises(InputError, match="presets must be a list, as"):
        api.inspect("synthetic_pairs")


def test_arguments_of_another_type_are_used_or_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them ended in a traceback."""
    monkeypatch.setattr("dice_ray.api.study.run_plan", lambda plan, driver, *, is_dry: plan)
    write_data(Path(), WORDS)
    plan_file.store(
        SweepPlan(name="sw", layers=layers_of("synthetic_pairs", ()), space="a:b", trials=1), runs_folder() / "sw"
    )
    note(ledger_in(runs_folder() / "sw"), "0001")
    any_: Any = api  # mypy refuses them too
    made = api.compare(table(), metric="f1", arm="loss", seed="seed").report()
    used = [
        lambda: any_.init("data/train.tsv", out="init.yaml"),
        lambda: any_.export_preset("sw", "best.yaml"),
        lambda: any_.plot_losses("losses.png"),
        lambda: any_.write_report(made, ["a", "b"], "reports"),
        lambda: any_.ablate(Path("loss_comparison"), "mine.yaml"),
    ]
    for call in used:
        call()
    assert all(Path(name).exists() for name in ("init.yaml", "best.yaml", "losses.png", "reports/report.html"))
    refused = {
        lambda: any_.export_preset("sw", Path("best.yaml")): "got best.yaml, which exists",
        lambda: any_.export_preset("sw", "best.txt"): "must be written to a new file that ends in .yaml, got best.txt",
        lambda: any_.report(["a", "b"]): r"names must be texts, got \['a', 'b'\]",
        lambda: any_.resume(Path("other")): "no sweep, study or run named 'other'",
        lambda: any_.train(None): "train must be a pandas DataFrame or a datasets.Dataset, got NoneType",
        lambda: any_.train(any_.Tables(None)): "train must be a pandas DataFrame",
        lambda: any_.ablate(data=None): "train must be a pandas DataFrame",
        lambda: any_.train("mine.yaml", None): "settings must be a list",
        lambda: any_.train("mine.yaml", {1: 2}): "1: is not a key",
        lambda: any_.ablate(arms=["dice", 1]): "arms must be texts, got 1",
        lambda: any_.ablate(losses=["dice"]): "losses must be a mapping",
        lambda: any_.ablate(care="1"): "care must be a difference above 0",
    }
    for call, match in refused.items():
        with pytest.raises(DiceRayError, match=match):
            call()


def test_a_name_goes_on_with_its_own_run_alone() -> None:
    dice_ray.train("synthetic_pairs", QUICK | {"loss": "dice"}, name="mine")
    assert dice_ray.train("synthetic_pairs", QUICK | {"loss": "dice", "launch.threads": 2}, name="mine").is_finished
    with pytest.raises(RunError, match=r"holds a run with other settings \(loss, loss\.dice\..*loss\.focal\."):
        dice_ray.train("synthetic_pairs", QUICK | {"loss": "focal"}, name="mine")
    with pytest.raises(InputError, match="is resumed without --seeds and --dry-run"):
        dice_ray.resume("mine", seeds=1, dry_run=True)


def test_a_name_that_mlflow_knows_is_not_another_run() -> None:
    """Two runs would be mixed: MLflow keeps the parameters and points that it has."""
    shutil.rmtree(dice_ray.train("synthetic_pairs", QUICK, name="mine").folder)
    with pytest.raises(RunError, match=r"must hold the run 'mine' that MLflow has .*: choose another name, or delete"):
        dice_ray.train("synthetic_pairs", QUICK | {"loss": "dice"}, name="mine")


def test_a_trial_is_resumed_with_its_sweep() -> None:
    with pytest.raises(InputError, match="a trial is resumed with its sweep or study: `dice-ray resume sweep`"):
        dice_ray.resume("sweep/trials/0001")


def test_sections_of_a_preset_must_be_mappings(tmp_path: Path) -> None:
    (tmp_path / "odd.yaml").write_text("task: sentence_pair\ntracking: true\n")
    with pytest.raises(ConfigError, match="tracking: must be"):
        api.validate(tmp_path / "odd.yaml")


def test_the_working_directory_is_no_folder_for_an_export(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    with pytest.raises(InputError, match="must be another one than the working directory"):
        dice_ray.export("mine", ".")


@pytest.mark.parametrize("refused", [{"training.batch_size": 10_000}, {"model.freeze": 99}], ids=str)
def test_settings_that_are_refused_do_not_take_the_name(refused: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="must be"):
        dice_ray.train("synthetic_pairs", QUICK | refused, name="mine")
    assert dice_ray.train("synthetic_pairs", QUICK, name="mine").is_finished


def test_a_label_that_a_drawn_test_split_alone_has_names_the_draw(tmp_path: Path) -> None:
    # A draw leaves every label in train, but for one that always comes with rarer ones.
    labels = [*["a,rare"] * 2, "a", *["c,rare"] * 2, "c", *["b"] * 34]
    rows = [f"a text {number}\t{each}" for number, each in enumerate(labels)]
    (tmp_path / "train.tsv").write_text("\n".join(["text\tlabel", *rows]))
    api.init(Path("train.tsv"), out=Path("mine.yaml"))
    drawn = [api.validate("mine.yaml", {"data.test_share": 0.6, "data.split_seed": seed}) for seed in range(40)]
    config = next(
        each for each in drawn if not any("rare" in record.labels for record in sources.load(each.data).train)
    )
    told = r"its labels must be among .*, got 'rare' \(the test split is 0\.6 of train, drawn with seed"
    with pytest.raises(DataError, match=told):
        build.prepare(config).test()


@pytest.mark.ray
@pytest.mark.usefixtures("on_kept_ray")
def test_without_a_test_split_each_seed_of_a_study_draws_its_own(tmp_path: Path) -> None:
    rows = [f"{'odd' if number % 4 else 'even'} {number}\tb\t{int(number % 4 > 0)}" for number in range(80)]
    (tmp_path / "train.tsv").write_text("\n".join(["sentence1\tsentence2\tlabel", *rows]))
    (tmp_path / "mine.yaml").write_text(PRESET.replace("folder: data", f"folder: {tmp_path}"))
    (tmp_path / "mine.py").write_text(STUDY)
    # The arms learn: where all collapse, the verdict has no command.
    settings = {"training.epochs": 3, "training.lr": 0.003, "data.test_share": 0.25}
    study = dice_ray.ablate("mine.py", "mine.yaml", settings, seeds=2, name="own")
    cells = study.frame[study.frame["kind"] == "cell"]
    assert set(cells["params.data.split_seed"]) == {1, 2}
    tested: dict[int, set[tuple[str, ...]]] = {1: set(), 2: set()}
    seeds, items = dict(zip(cells["id"], cells["seed"], strict=True)), texts(cells, "test/items.csv")
    for id_, text in items.items():
        ids = tuple(line.partition(",")[0] for line in text.splitlines()[1:])
        assert len(ids) == 20
        tested[seeds[id_]].add(ids)
    assert [len(ids) for ids in tested.values()] == [1, 1], "arms are compared on the same items"
    assert tested[1] != tested[2]
    text = study.report().text()
    assert "each seed drew its own test split" in text.lower()
    given = "--set training.epochs=3 --set training.lr=0.003 --set data.test_share=0.25"
    assert f"to settle it  dice-ray ablate mine.py --data mine.yaml {given} --name own --seeds 5\n" in text
    assert dice_ray.evaluate("own/strong/2").scores.metrics["f1"] == pytest.approx(
        float(cells[(cells["arm"] == "strong") & (cells["seed"] == 2)]["metrics.test/f1"].iloc[0])
    )


def test_files_that_changed_are_read_again(tmp_path: Path) -> None:
    for size in (40, 80):
        rows = [f"a {number}\tb\t{number % 2}" for number in range(size)]
        (tmp_path / "train.tsv").write_text("\n".join(["sentence1\tsentence2\tlabel", *rows]))
        (tmp_path / "mine.yaml").write_text(PRESET.replace("folder: data", "folder: ."))
        prepared = build.prepare(api.validate("mine.yaml"))
        assert len(prepared.train.rows) + len(prepared.dev.rows) == size


def write_data(folder: Path, rows: list[str], named: str = "data") -> None:
    """Files of the preset, with a row without a label, and the first rows as the test split."""
    (folder / "data").mkdir(exist_ok=True)
    head = "sentence1\tsentence2\tlabel"
    (folder / "data/train.tsv").write_text("\n".join([head, *rows, "a\tb\t"]))
    (folder / "data/test.tsv").write_text("\n".join([head, *rows[:10]]))
    files = PRESET.replace("train.tsv", "train.tsv\n      test: test.tsv").replace("folder: data", f"folder: {named}")
    (folder / "mine.yaml").write_text(files)


LONG = [f"{'very ' * (30 * (number % 4 == 0))}odd {number}\tb\t{number % 2}" for number in range(40)]
"""Pairs, a quarter of them longer than a row."""
WORDS = [f"{'very ' * (30 * (n % 4 == 0))}{'odd' if n % 2 else 'even'} {n}\tb\t{n % 2}" for n in range(120)]
"""More of them, whose label can be learned."""
SHORT = {"training.epochs": 1, "training.evaluations": 2, "task.sentence_pair.max_length": 24}


@dataclass(frozen=True)
class Driven:
    """A sweep or study that several tests read.

    Attributes:
        folder: Where it was started.
        printed: What its screen said.
        frame: Its runs as they were at its end.
    """

    folder: Path
    result: Result
    printed: list[str]
    frame: pd.DataFrame


def driven(folder: Path, drive: Callable[[], Result]) -> Driven:
    with redirect_stdout(io.StringIO()) as printed:
        result = drive()
    return Driven(folder, result, printed.getvalue().splitlines(), result.frame)


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory, migrated: Path) -> Driven:
    """It reads files by a path relative to the folder that it is started in."""
    folder = tmp_path_factory.mktemp("swept")
    copied(migrated, folder)
    write_data(folder, WORDS)
    settings = SHORT | {"tracking.text": True}
    given: dict[str, Any] = {"space": "loss_tuning:focal", "trials": 3, "top": 1, "register": "m"}
    with standing(folder):
        return driven(folder, lambda: dice_ray.tune("mine.yaml", settings, **given, show=TerminalScreen))


@pytest.fixture(scope="module")
def studied(kept_ray: KeptRay, tmp_path_factory: pytest.TempPathFactory, migrated: Path) -> Driven:
    folder = tmp_path_factory.mktemp("studied")
    copied(migrated, folder)
    write_data(folder, WORDS, f"{folder}/data")
    (folder / "mine.py").write_text(STUDY)
    with standing(folder), kept_ray.in_place():
        return driven(folder, lambda: dice_ray.ablate("mine.py", "mine.yaml", SHORT, seeds=1, show=TerminalScreen))


def test_what_was_dropped_and_cut_is_shown_and_stored(tmp_path: Path) -> None:
    write_data(tmp_path, LONG)
    settings = {"training.epochs": 1, "task.sentence_pair.max_length": 24}
    lines: list[str] = []
    dice_ray.train("mine.yaml", settings, show=lambda terminal: Shown([], lines))
    assert lines[:3] == [
        "Warning: too few items of the rarest class: dev has 2 of '0' and test has 5 of '0', and with fewer than 20 a "
        "score depends on chance. Label more of them, draw a larger dev split (data.dev_share) or give a larger test "
        "file.",
        "data: 36 train, 4 dev, 10 test records (dev is 0.1 of train, drawn with seed 0, stratified by label)",
        "  1 of 41 rows of train.tsv dropped: no label (line 42)",
    ]
    assert set(read(TRAIN_EXPERIMENT)["tags.data"]) == {"mine"}, "not the folder, which is called data"
    assert {entry.about["data"] for entry in api.cached()[:2]} == {"mine"}
    (file,) = tmp_path.rglob("artifacts/data.json")
    stored = json.loads(file.read_text())
    assert stored["read"]["train"]["dropped"] == {"no label": {"count": 1, "first": [42]}}
    assert sum(stored["cut"].values()) == 10
    assert f"  {stored['cut']['train']} of 36 train records truncated to max_length" in lines


@pytest.mark.ray
def test_a_sweep_shows_and_stores_its_data_and_stays_on_them(swept: Driven, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(swept.folder)
    assert_data_are_shown(swept, is_test_cut=False)
    write_data(swept.folder, WORDS[1:])
    with pytest.raises(RunError, match="must have the data that it was started on, and they were changed"):
        api.resume(swept.result.name)
    write_data(swept.folder, WORDS)


@pytest.mark.ray
def test_a_study_shows_and_stores_its_data_and_stays_on_them(studied: Driven, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(studied.folder)
    assert_data_are_shown(studied, is_test_cut=True)
    write_data(studied.folder, WORDS[1:], f"{studied.folder}/data")
    for again in (
        lambda: api.resume("mine"),
        lambda: dice_ray.ablate("mine.py", "mine.yaml", SHORT, seeds=2),
    ):
        with pytest.raises(RunError, match="must have the data that it was started on, and they were changed"):
            again()
    write_data(studied.folder, WORDS, f"{studied.folder}/data")


def assert_data_are_shown(done: Driven, *, is_test_cut: bool) -> None:
    """First of all, with what was dropped and cut; a sweep only counts the classes of test."""
    begin = next(number for number, line in enumerate(done.printed) if line.startswith("data:"))
    warning, lines = " ".join(map(str.strip, done.printed[:begin])), done.printed[begin:]
    assert warning.startswith("Warning: too few items of the rarest class: dev has 6 of '0' and test has 5 of '0', and")
    assert set(done.frame["tags.few_items"].dropna()) == {warning}
    assert lines[0].startswith("data: 108 train, 12 dev, 10 test records")
    last = max(number for number, line in enumerate(lines) if "truncated to max_length" in line)
    assert all(line.startswith("  ") for line in lines[1 : last + 1])
    assert any("10 test records truncated" in line for line in lines) == is_test_cut
    (stored,) = done.folder.rglob("artifacts/data.json")
    assert sorted(json.loads(stored.read_text())["cut"]) == ["dev", *(["test"] if is_test_cut else []), "train"]


def test_train_leaves_a_run_in_mlflow() -> None:
    told: list[Evaluation] = []
    result = dice_ray.train("synthetic_pairs", QUICK | {"loss": "dice"}, show=lambda terminal: Shown(told))
    assert [evaluation.finished for evaluation in told] == [False, True]
    (run,) = result.frame.to_dict("records")
    assert run["id"] == result.name
    assert run["status"] == "FINISHED"
    assert run["params.loss.dice.gamma"] == 0.01
    assert run["metrics.dev/f1"] == told[-1].metrics["dev/f1"]
    assert run["metrics.dev/best_f1"] == max(evaluation.metrics["dev/f1"] for evaluation in told)
    best = max(told, key=lambda evaluation: evaluation.metrics["dev/f1"])
    is_collapsed = bool(best.metrics["dev/collapsed"])
    assert result.best == api.Best(result.name, "dev/f1", best.metrics["dev/f1"], is_collapsed=is_collapsed)
    assert run["tags.collapsed"] == ("true" if best.metrics["dev/collapsed"] else "false")
    assert result.name in result.report().text()


@pytest.mark.parametrize(("used", "threshold"), [(0.125, 0.125), (0.5, None)])
def test_the_best_of_a_run_names_the_threshold_that_predictions_use(
    used: float, threshold: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing else finds a threshold beside a score that `predict` does not reach, as it uses .5."""
    metrics = {"dev/f1_tuned": 0.5, "dev/collapsed": 1.0, "dev/threshold": 0.125, "dev/threshold_used": used}
    monkeypatch.setattr("dice_ray.run.single.train_alone", lambda *_: metrics)
    monkeypatch.setattr("dice_ray.api.tracking.keep_best", lambda *_, **__: None)
    best = dice_ray.train("synthetic_pairs", {"task.sentence_pair.score": "decision"}, name="mine").best
    assert best == api.Best("mine", "dev/f1_tuned", 0.5, is_collapsed=True, threshold=threshold)


def test_a_run_is_predicted_and_scored_by_its_name(tmp_path: Path) -> None:
    dice_ray.train("synthetic_pairs", QUICK | {"training.epochs": 2}, name="mine")
    (before,) = read("train").to_dict("records")
    (tmp_path / "new.tsv").write_text("sentence1\tsentence2\nthe router is broken\tit is urgent\n")
    assert dice_ray.predict("mine", "new.tsv").text().startswith("id\tlabel\tprobability_0\tprobability_1\n2\t")

    at_url = f"{tmp_path.as_uri()}/new.tsv"
    assert dice_ray.predict("mine", at_url).text() == dice_ray.predict("mine", "new.tsv").text()
    (tmp_path / "labelled.tsv").write_text("sentence1\tsentence2\tlabel\nthe router is broken\tit is urgent\t1\n")
    on_file = dice_ray.evaluate("mine", "labelled.tsv").scores.metrics
    assert dice_ray.evaluate("mine", f"{tmp_path.as_uri()}/labelled.tsv").scores.metrics == on_file
    by_path = dice_ray.evaluate("mine", tmp_path / "labelled.tsv")
    assert by_path.data == str(tmp_path / "labelled.tsv"), "a file called test is not the split"

    for _ in range(2):  # scored again, it is stored once
        scored = dice_ray.evaluate("mine", items=str(tmp_path / "items.csv"))
    with pytest.raises(InputError, match=r"labelled\.tsv"):  # would be overwritten
        dice_ray.evaluate("mine", tmp_path / "labelled.tsv", items=tmp_path / "labelled.tsv")
    assert scored.not_stored is None
    (run,) = read("train").to_dict("records")
    assert {name: run[f"metrics.test/{name}"] for name in scored.scores.metrics} == scored.scores.metrics
    assert [run[name] for name in ("status", "end")] == [before[name] for name in ("status", "end")]
    assert len(curves("train").query("metric == 'test/f1'")) == 1
    (artifact,) = tmp_path.glob("mlartifacts/*/artifacts/test/items.csv")
    assert artifact.read_text() == (tmp_path / "items.csv").read_text()
    assert artifact.read_text().count("\n") == 1 + len(scored.scores.items)
    assert dice_ray.evaluate("mine", "dev").scores.metrics["f1"] == run["metrics.dev/best_f1"]

    (tmp_path / "mlflow.db").rename(tmp_path / "away.db")
    not_stored = dice_ray.evaluate("mine", "dev").not_stored
    assert not_stored == "MLflow holds no such run here: the counts of each record are not stored with it"
    assert not (tmp_path / "mlflow.db").exists()


def test_a_run_has_one_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second one that was refused had fetched the files of the store over those of the first one before."""
    folder = tmp_path / "dice_ray_runs/mine"
    fetched: list[Path] = []
    monkeypatch.setattr("dice_ray.run.object_store.fetch", fetched.append)
    with lock(folder), pytest.raises(RunError, match=r"mine must have one driver, and another process runs it: wait"):
        dice_ray.train("synthetic_pairs", QUICK, name="mine")
    assert {path.name for path in folder.iterdir()} == {"lock"}
    assert fetched == []
    assert dice_ray.train("synthetic_pairs", QUICK, name="mine").is_finished
    assert folder.samefile(fetched[0])


def test_steps_between_evaluations_are_tracked() -> None:
    dice_ray.train("synthetic_pairs", QUICK | {"training.batch_size": 10}, name="mine")
    stored = curves("train")
    steps = {name: list(stored.query("metric == @name")["step"]) for name in stored["metric"].unique()}
    for name in ("loss", "lr", "padding", "tokens_per_second"):
        assert sorted(steps[f"step/{name}"]) == [1, 2, 3, 4, 6, 7, 8, 9], name
    assert sorted(steps["train/loss"]) == sorted(steps["train/lr"]) == [5, 10]


def test_a_dry_run_runs_the_first_steps_and_leaves_nothing(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path_factory.mktemp("scratch")))
    quick = {"data.source.synthetic.size": 200, "training.epochs": 4, "training.batch_size": 20}
    settings = {**quick, "training.precision": "fp32"}
    result = dice_ray.train("synthetic_pairs", settings, name="mine", dry_run=True)
    assert result._repr_html_() is None
    plan = result.rehearsal
    assert plan is not None
    found = plan.rehearsal
    assert (found.records, found.rows) == ({"train": 200, "dev": 100, "test": 100}, {"train": 200, "dev": 100})
    assert (found.num_steps, found.num_evaluations, found.num_timed) == (40, 4, _NUM_STEPS - 1)
    assert found.num_steps * found.seconds_a_step < found.seconds < 300
    assert 50 * 2**20 < found.peak_memory < 64 * 2**30
    assert plan.folder == Path("dice_ray_runs/mine")
    (tmp_path / "mine.yaml").write_text(plan.config)
    assert api.validate("mine.yaml") == api.validate("synthetic_pairs", settings)
    (tmp_path / "mine.yaml").unlink()
    assert list(tmp_path.iterdir()) == [tmp_path / "mlflow.db"]
    # The compiler of torch makes a folder of its own when it is first imported.
    assert [path for path in Path(tempfile.gettempdir()).iterdir() if "torchinductor" not in path.name] == []

    dice_ray.train("synthetic_pairs", settings | {"training.epochs": 1}, name="mine")
    weights = torch.load("dice_ray_runs/mine/best.pt", weights_only=True)["model"]
    assert sum(weight.numel() for weight in weights.values()) == found.num_parameters


def test_a_dry_run_refuses_what_the_run_would() -> None:
    with pytest.raises(InputError, match="settings must be a list"):
        api.train("synthetic_pairs", "training.lr=1", dry_run=True)
    for wrong in (0, "2"):
        with pytest.raises(InputError, match=f"max_hours must be a number above 0, got {wrong!r}"):
            api.tune("synthetic_pairs", max_hours=wrong)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="seeds must be a whole number, got '2'"):
        api.ablate(seeds="2")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="a loss that is an object must be the argument `loss`"):
        api.train("synthetic_pairs", {"loss": print}, dry_run=True)
    with pytest.raises(InputError, match="register"):
        api.train("synthetic_pairs", QUICK, register="a/b", dry_run=True)
    with pytest.raises(ConfigError, match=r"batch_size: must be at most the rows of the training split, 100"):
        api.train("synthetic_pairs", QUICK | {"training.batch_size": 200, "launch.workers": 2}, dry_run=True)


def test_gpus_that_are_not_there_are_refused() -> None:
    with pytest.raises(RunError, match=r"there must be 100 GPUs .*, got \d+"):
        dice_ray.train("synthetic_pairs", QUICK | {"launch.gpus": 100})


def test_class_weights_are_stored_and_those_that_cannot_be_are_refused() -> None:
    trained = dice_ray.train(
        "synthetic_pairs", QUICK | {"loss": "weighted_cross_entropy", "training.lr": 1e-9}, name="weighted"
    )
    assert "It predicts one class only: try more epochs" in trained.best.line
    with pytest.raises(ConfigError, match="below 0"):
        dice_ray.train("synthetic_pairs", QUICK | {"loss.weighted_cross_entropy.weighting.lg.k": 0.1}, name="bad")
    rows = api.Result("weighted", TRAIN_EXPERIMENT).frame.set_index("id")
    assert str(rows.loc["weighted", "tags.class_weights"]).endswith(" to 1 (1)")
    assert list(rows.index) == ["weighted"]


@pytest.mark.ray
def test_a_sweep_of_files_by_a_relative_path(swept: Driven, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(swept.folder)
    trials = swept.frame[swept.frame["kind"] == "trial"]
    assert len(trials) == 3
    assert set(trials["params.loss"]) == {"focal"}
    assert set(trials["state"]) <= {"done", "pruned"}
    assert api.resume(swept.result.name).name == swept.result.name


@pytest.mark.ray
@pytest.mark.usefixtures("on_kept_ray")
def test_from_a_study_that_grows_to_a_table(
    studied: Driven, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(studied.folder)
    before = Path("dice_ray_runs/mine/ledger.jsonl").read_text()
    study = dice_ray.ablate("mine.py", "mine.yaml", SHORT, seeds=2)
    after = Path("dice_ray_runs/mine/ledger.jsonl").read_text()
    assert after.startswith(before)
    assert (before.count('"end"'), after.count('"end"')) == (2, 4)
    cells = study.frame[study.frame["kind"] == "cell"]
    assert sorted(zip(cells["arm"], cells["seed"], strict=True)) == [
        (arm, seed) for arm in ("plain", "strong") for seed in (1, 2)
    ]
    assert cells["tags.class_weights"].notna().tolist() == [arm == "strong" for arm in cells["arm"]]
    assert len(list(Path("mlartifacts").glob("*/artifacts/test/items.csv"))) == 4
    scored = dice_ray.evaluate("mine/strong/2")
    assert scored.not_stored is None
    (cell,) = cells[(cells["arm"] == "strong") & (cells["seed"] == 2)].to_dict("records")
    assert scored.scores.metrics["f1"] == cell["metrics.test/f1"]

    tables = dice_ray.report("mine")
    assert "strong" in tables.text()
    written = tables.write(studied.folder / "out")
    assert {path.suffix for path in written} >= {".md", ".csv", ".tex"}
    assert capfd.readouterr() == ("", "")


def test_a_run_is_registered_once_and_its_predictions_are_stored_where_wanted(tmp_path: Path) -> None:
    """Also finds a name that is refused only after the training, as the tag that holds it is too long."""
    for register, must in (("a/b", "be letters"), ("n" * 231, "have at most 230 characters, got 231")):
        with pytest.raises(InputError, match=f"registered model must {must}"):
            dice_ray.train("synthetic_pairs", QUICK, name="mine", register=register)
    assert not (tmp_path / "dice_ray_runs").exists()
    client = quiet_client(f"sqlite:///{tmp_path}/mlflow.db")
    for _ in range(2):
        dice_ray.train("synthetic_pairs", QUICK | {"tracking.text": True}, name="mine", register="pairs")
        (version,) = client.search_model_versions("name = 'pairs'")
        (row,) = read(TRAIN_EXPERIMENT).to_dict("records")
        assert row["tags.registered.pairs"] == "1"
        client.delete_tag(str(version.run_id), "dice_ray.registered.pairs")  # as one leaves it that is killed
    import mlflow

    model = mlflow.pyfunc.load_model(version.source)
    assert list(model.predict([{"sentence1": "a", "sentence2": "b"}])["id"]) == ["1"]
    (file,) = tmp_path.rglob("artifacts/dev/predictions.tsv")
    assert len(file.read_text().splitlines()) == 1 + 50
    with file.with_name("texts.csv").open(newline="") as stored:
        text_of = {row["id"]: row["text"] for row in csv.DictReader(stored)}
    assert list(text_of) == [line.partition("\t")[0] for line in file.read_text().splitlines()[1:]]
    assert all(" | " in text for text in text_of.values()), "both sentences of a pair"
    assert not (tmp_path / "dice_ray_runs/mine/model").exists()
    assert version.run_id is not None
    run = client.get_run(version.run_id)
    assert run.inputs is not None
    assert [(used.dataset.name, used.dataset.source_type) for used in run.inputs.dataset_inputs] == [
        ("synthetic:pairs", "synthetic")
    ]
    assert run.inputs.dataset_inputs[0].dataset.digest == json.loads((file_of(run) / "task.json").read_text())["data"]


def file_of(run: Run) -> Path:
    """Where the run lies."""
    return runs_folder() / run.data.tags[schema.ID]


def test_no_text_is_stored_unless_wanted(tmp_path: Path) -> None:
    dice_ray.train("synthetic_pairs", QUICK, name="mine")
    assert {file.name for file in (tmp_path / "mlartifacts").rglob("*") if file.is_file()} == {
        "config.yaml",
        "data.json",
    }


def test_what_earlier_commands_could_not_send_is_sent(tmp_path: Path) -> None:
    here = f"sqlite:///{tmp_path}/mlflow.db"
    for name, store in (("killed", here), ("elsewhere", "http://127.0.0.1:9")):
        spool = Spool(runs_folder() / name, TRAIN_EXPERIMENT, store)
        spool.add(Open(name, name, {}, {schema.KIND: "run"}, None, 1000))
        spool.close(is_sent=False)
    busy = Spool(runs_folder() / "busy", TRAIN_EXPERIMENT, here)
    ((file, why),) = api.send_waiting().items()
    assert (file.parent.name, why[:40]) == ("elsewhere", "it is for http://127.0.0.1:9: set MLFLOW")
    assert read(TRAIN_EXPERIMENT)[["id", "status"]].to_numpy().tolist() == [["killed", "KILLED"]]
    assert [run.state for run in api.runs(TRAIN_EXPERIMENT)] == ["killed"]
    busy.close(is_sent=True)


def test_a_file_that_cannot_be_read_or_sent_waits_and_the_others_are_sent(tmp_path: Path) -> None:
    """`runs`, `report` and `ui` failed for all experiments while one such file lay in the runs folder."""
    here = f"sqlite:///{tmp_path}/mlflow.db"
    files = []
    for name in ("damaged", "locked", "whole"):
        spool = Spool(runs_folder() / name, TRAIN_EXPERIMENT, here)
        spool.add(Open(name, name, {}, {schema.KIND: "run"}, None, 1000))
        spool.close(is_sent=False)
        files.append(spool.path)
    damaged, locked, _ = files
    damaged.write_text("no entry\n")
    listed = locked.rename(locked.with_name("unsent-00000000.jsonl"))
    locked.mkdir()  # neither to be read nor to be written, by root either
    waiting = api.send_waiting()
    assert list(waiting) == [damaged, listed, locked]
    assert "but is damaged" in waiting[damaged]
    assert "Is a directory" in waiting[listed]
    assert "Is a directory" in waiting[locked]
    assert read(TRAIN_EXPERIMENT)["id"].tolist() == ["whole"]


@pytest.mark.ray
@pytest.mark.usefixtures("on_kept_ray")
def test_the_best_of_a_sweep_is_kept_and_registered(
    swept: Driven, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(swept.folder)
    result, rows = swept.result, swept.frame.set_index("id")
    (best,) = rows.index[rows["tags.registered.m"].notna()]
    assert rows.loc[best, "metrics.dev/best_f1"] == rows["metrics.dev/best_f1"].max()
    trials = {folder.name: folder for folder in (result.folder / "trials").iterdir()}
    assert {id_ for id_, folder in trials.items() if (folder / "best.pt").exists()} == {best}
    assert not list(result.folder.rglob("last.pt"))
    assert api.evaluate(f"{result.name}/{best}", "dev").scores.metrics["f1"] == pytest.approx(
        rows.loc[best, "metrics.dev/best_f1"]
    )
    loser = next(id_ for id_ in trials if id_ != best)
    kept = rf"{result.name}/{loser} has no checkpoint any more: .* the best is {result.name}/{best}$"
    with pytest.raises(RunError, match=kept):
        api.evaluate(f"{result.name}/{loser}", "dev")
    assert len(list(swept.folder.rglob("artifacts/dev/predictions.tsv"))) == 1
    assert len(list(swept.folder.rglob("artifacts/config.yaml"))) == 3
    again = api.resume(result.name, more_trials=1, register="m")
    assert again.is_finished
    assert len(list(result.folder.rglob("best.pt"))) == 1
    assert capfd.readouterr() == ("", "")
