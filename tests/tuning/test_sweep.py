"""A sweep: every trial once, failures as rows, MLflow equal to the ledger; and its best again with other seeds."""

from __future__ import annotations

import operator
import statistics
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from dice_ray import api
from dice_ray.config.load import Layer, values_layer
from dice_ray.errors import ConfigError, DataError, InputError
from dice_ray.run.driver import Driver, Event, TrialCounts
from dice_ray.tracking.reader import curves, read
from dice_ray.tuning import plan_file, runner, samplers
from dice_ray.tuning.ledger import Ledger, TrialOutcome, TrialSpec, ledger_in
from dice_ray.tuning.runner import _session
from dice_ray.tuning.sweep import SweepPlan
from tests.kept_ray import KeptRay
from tests.standing import standing
from tests.tracking.stores import copied
from tests.tuning.trials import Screen, note

if TYPE_CHECKING:
    import pandas as pd


from dice_ray.tuning import ranking

SPACE = f"{Path(__file__).with_name('spaces.py')}:losses_and_a_rate_too_high"


class Watch(Screen):
    """Keeps what it is told, and looks once at who listens."""

    is_over = False

    def __init__(self) -> None:
        self.told: list[TrialCounts] = []
        self.listening: set[str] = set()

    def __exit__(self, *error: object) -> None:
        self.is_over = True

    def show(self, state: Event) -> None:
        if not isinstance(state, TrialCounts):
            print(state, file=self.terminal)
            return
        self.told.append(state)
        if state.running and not self.listening:
            me = psutil.Process()
            sockets = [socket for process in [me, *me.children(recursive=True)] for socket in process.net_connections()]
            self.listening = {socket.laddr.ip for socket in sockets if socket.status == "LISTEN"}
            print("a line for the user", file=self.terminal)


def test_data_that_is_not_there_is_told_before_anything_starts(tmp_path: Path) -> None:
    reader = {"tables": {"quoting": False, "columns": {"pair": {"first": "a", "second": "b", "label": "c"}}}}
    files = {"train": "none.tsv", "folder": str(tmp_path), "reader": reader}
    layers = (values_layer("preset", {"task": "sentence_pair", "data.source": {"files": files}}),)
    with pytest.raises(DataError, match=r"none.tsv"):
        runner.run(SweepPlan(name="lost", layers=layers, space=SPACE, trials=1), tmp_path / "lost", Driver())
    assert not (tmp_path / "lost").exists()


def test_what_could_not_be_stored_waits_and_never_hides_what_went_wrong(
    tmp_path: Path, layers: tuple[Layer, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "no_folder").touch()
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/no_folder/mlflow.db")
    plan = SweepPlan(name="lost", layers=layers, space=SPACE, trials=1)

    def go_wrong() -> None:
        with _session(plan, tmp_path / "lost", Driver(num_cpus=1), []) as driver:
            driver.writer.open("lost", name="lost", params={}, tags={})
            raise ValueError("on its way")

    with pytest.raises(ValueError, match="on its way"):
        go_wrong()
    (unsent,) = (tmp_path / "lost").glob("unsent-*.jsonl")
    assert '"lost"' in unsent.read_text()


@pytest.mark.ray
def test_a_sweep(tmp_path: Path, layers: tuple[Layer, ...], capfd: pytest.CaptureFixture[str]) -> None:
    plan = SweepPlan(name="losses", layers=layers, space=SPACE, trials=8)
    screen = Watch()
    progress = runner.run(plan, tmp_path / "losses", Driver(num_cpus=2, show=screen.on))
    said = capfd.readouterr()
    warning, _, out = said.out.partition("\n")
    assert warning.startswith("Warning: too few items of the rarest class: dev has 10 of '1' and test has 10 of '1'")
    assert (out, said.err) == (
        "data: 200 train, 100 dev, 100 test records\nStarting Ray ...\na line for the user\n",
        "",
    )
    assert {ip.removeprefix("::ffff:") for ip in screen.listening} == {"127.0.0.1"}
    assert screen.told[-1] == progress
    assert screen.is_over

    ledger = Ledger(tmp_path / "losses" / "ledger.jsonl")
    assert sorted(ledger.outcomes) == sorted(ledger.specs) == plan.ids
    failed = {id_ for id_, trial in ledger.specs.items() if trial.params["training.lr"] > 1}
    assert {id_ for id_, ended in ledger.outcomes.items() if ended.state == "failed"} == failed != set()
    assert all("must be finite" in str(ledger.outcomes[id_].failure) for id_ in failed)
    assert progress.is_finished
    assert progress.failed == len(failed)
    assert progress.best_score == max(ended.score for ended in ledger.outcomes.values() if ended.score is not None)

    rows = read("losses").set_index("id")
    assert not any(ended.test for ended in ledger.outcomes.values())
    assert not [name for name in rows if str(name).startswith("metrics.test/")], "a search sees train and dev alone"
    assert list(rows.index[rows["kind"] == "trial"].sort_values()) == plan.ids
    assert set(rows["status"]) == {"FINISHED", "FAILED"}
    assert rows.loc["losses", "status"] == "FINISHED"
    for id_, trial in ledger.specs.items():
        assert rows.loc[id_, "state"] == ledger.outcomes[id_].state
        assert rows.loc[id_, "params.loss"] == trial.params["loss"]
    stored = curves("losses")
    stored = stored[stored["metric"] == "dev/f1"]
    assert {id_: tuple(zip(of["step"], of["value"], strict=True)) for id_, of in stored.groupby("id")} == {
        id_: ended.curve for id_, ended in ledger.outcomes.items() if ended.curve
    }

    before = (tmp_path / "losses" / "ledger.jsonl").read_bytes()
    assert runner.run(plan, tmp_path / "losses", Driver()).is_finished
    assert (tmp_path / "losses" / "ledger.jsonl").read_bytes() == before


@pytest.mark.ray
@pytest.mark.usefixtures("on_kept_ray", "uri")
@pytest.mark.parametrize("faults", ["faults", pytest.param("faults_and_an_exit", marks=pytest.mark.slow)])
def test_a_failed_trial_says_why_and_is_tried_again_if_a_machine_may_be_the_reason(
    tmp_path: Path, layers: tuple[Layer, ...], faults: str
) -> None:
    layer = values_layer("--set", {"loss": "custom", "loss.custom.target": "tests.tuning.faulty:Faulty"})
    space = SPACE.replace("losses_and_a_rate_too_high", faults)
    plan = SweepPlan(name="faults", layers=(*layers, layer), space=space, trials=4, sampler="brute_force")
    assert runner.run(plan, tmp_path / "faults", Driver(num_cpus=2)).is_finished
    ledger = Ledger(tmp_path / "faults" / "ledger.jsonl")
    fault_of = {id_: begun.params["loss.custom.parameters.fault"] for id_, begun in ledger.specs.items()}
    why = {fault_of[id_]: ended.failure for id_, ended in ledger.outcomes.items()}
    attempts = {"an error": 1, "a full disk": 3}
    if "an exit" in why:
        assert str(why.pop("an exit")).startswith("The actor is dead because its worker process has died.")
        attempts["an exit"] = 3
    assert why == {"an error": "ValueError: a mistake", "a full disk": "OSError: no space left", "none": None}
    assert Counter((tmp_path / "attempts").read_text().splitlines()) == attempts
    assert "and more words about it" in (tmp_path / "faults" / "log.txt").read_text()


@dataclass(frozen=True)
class Resumed:
    """A sweep that is stopped for the time, goes on with more trials, runs its best again, and then once more."""

    folder: Path
    stopped: TrialCounts
    rows_when_stopped: pd.DataFrame
    more: TrialCounts
    searched: Ledger
    rows_when_searched: pd.DataFrame
    ledger: Ledger


@pytest.fixture(scope="module")
def resumed(
    kept_ray: KeptRay, layers: tuple[Layer, ...], tmp_path_factory: pytest.TempPathFactory, migrated: Path
) -> Iterator[Resumed]:
    folder = tmp_path_factory.mktemp("resumed")
    copied(migrated, folder)
    space = SPACE.replace("losses_and_a_rate_too_high", "two_rates")
    plan = SweepPlan(
        name="seeds", layers=layers, space=space, trials=1, sampler="brute_force", scheduler="median", top=1
    )
    file = folder / "seeds" / "ledger.jsonl"
    with standing(folder), kept_ray.in_place():
        stopped = runner.run(plan, folder / "seeds", Driver(max_hours=1e-9))
        rows_when_stopped = read("seeds")
        more = runner.run(plan.model_copy(update={"trials": 5, "seeds": 1}), folder / "seeds", Driver())
        searched, rows_when_searched = Ledger(file), read("seeds")
        with file.open("rb+") as lines:  # as a kill leaves it: the rerun has begun
            lines.truncate(file.read_bytes().rindex(b'{"event": "end"'))
        assert runner.run(plan.model_copy(update={"trials": 5, "seeds": 2}), folder / "seeds", Driver()).is_finished
        yield Resumed(folder, stopped, rows_when_stopped, more, searched, rows_when_searched, Ledger(file))


@pytest.mark.ray
def test_a_sweep_that_stops_for_the_time_goes_on_with_more_trials(resumed: Resumed) -> None:
    assert not resumed.stopped.is_finished
    assert set(resumed.rows_when_stopped["status"]) <= {"KILLED"}
    assert resumed.more.is_finished
    trials = [begun for begun in resumed.searched.specs.values() if not begun.rerun_of]
    assert sorted(trial.params["training.lr"] for trial in trials) == [1e-3, 2e-3]
    assert set(resumed.rows_when_searched["status"]) == {"FINISHED"}


def test_a_search_that_has_tried_all_there_is_says_so(tmp_path: Path, layers: tuple[Layer, ...]) -> None:
    space = SPACE.replace("losses_and_a_rate_too_high", "two_rates")
    plan = SweepPlan(name="all", layers=layers, space=space, trials=5, sampler="brute_force")
    assert not plan.is_exhausted(ledger_in(tmp_path), None)
    rerun = plan.model_copy(update={"seeds": 2})
    assert rerun.remaining(ledger_in(tmp_path), None)[0] == 6, "two trials, and each again with two seeds"
    ledger = Ledger(tmp_path / "ledger.jsonl")
    for number, rate in enumerate((1e-3, 2e-3), start=1):
        ledger.append(TrialSpec(id=f"000{number}", params={"training.lr": rate}, seed=0))
        assert not plan.is_exhausted(ledger_in(tmp_path), None)
        metrics = ({"dev/f1": 0.5},)
        ledger.append(TrialOutcome(id=f"000{number}", state="done", curve=((5, 0.5),), metrics=metrics))
        planned = plan.model_copy(update={"trials": number})
        assert planned.is_exhausted(ledger_in(tmp_path), None) == (number == 2)
    assert plan.is_exhausted(ledger_in(tmp_path), None)
    assert rerun.remaining(ledger_in(tmp_path), None)[0] == 4
    assert not plan.model_copy(update={"sampler": "tpe"}).is_exhausted(ledger_in(tmp_path), None)
    before = (tmp_path / "ledger.jsonl").read_bytes()
    assert runner.run(plan, tmp_path, Driver()).is_finished
    assert "ray" not in (tmp_path / "log.txt").read_text().lower()
    assert (tmp_path / "ledger.jsonl").read_bytes() == before


def test_a_warm_start_that_leaves_nothing_to_try_is_refused(tmp_path: Path, layers: tuple[Layer, ...]) -> None:
    """Ray was started for no trial, and the command ended in a traceback, once its folder had been made."""
    space = SPACE.replace("losses_and_a_rate_too_high", "two_rates")
    plan = SweepPlan(name="next", layers=layers, space=space, trials=2, sampler="brute_force", warm_start="all")
    old = plan.model_copy(update={"name": "all", "warm_start": None, "digest": plan.base().splits().digest})
    plan_file.store(old, tmp_path / "all")
    note(Ledger(tmp_path / "all/ledger.jsonl"), "0001", params={"training.lr": 1e-3})
    ledger = ledger_in(tmp_path / "next")
    assert plan.remaining(ledger, None)[0] == 1, "before the known trials are copied"
    note(Ledger(tmp_path / "all/ledger.jsonl"), "0002", params={"training.lr": 2e-3})
    with pytest.raises(InputError, match="next has tried all that its space holds, with the trials of all"):
        runner.run(plan, tmp_path / "next", Driver())
    assert not (tmp_path / "next").exists()


@pytest.mark.ray
def test_the_best_run_again_with_other_seeds_and_a_killed_rerun_goes_on(
    resumed: Resumed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(resumed.folder)
    first, ledger = resumed.searched, resumed.ledger
    (again,) = [begun for begun in first.specs.values() if begun.rerun_of]
    assert first.outcomes[again.id].metrics != first.outcomes[str(again.rerun_of)].metrics
    assert set(ledger.outcomes) == {"0001", "0002", *(f"{again.rerun_of}-{seed}" for seed in (1001, 1002))}
    assert ledger.outcomes[again.id].curve == first.outcomes[again.id].curve
    rows = read("seeds").set_index("id")
    assert rows.loc[again.id, "kind"] == "rerun"
    assert (rows.loc[again.id, "seed"], rows.loc[again.id, "tags.rerun_of"]) == (1001, again.rerun_of)
    (best,) = [table for table in api.report("seeds").tables if table.name == "best_trials"]
    assert best.data["reruns"].tolist()[0] == 2
    assert best.data["trial"].tolist()[0] == again.rerun_of
    scores = [ledger.outcomes[id_].score or 0.0 for id_, begun in ledger.specs.items() if begun.rerun_of]
    assert best.data["mean_of_reruns"].tolist()[0] == pytest.approx(statistics.fmean(scores))


@pytest.mark.ray
@pytest.mark.usefixtures("on_kept_ray", "uri")
def test_several_objectives_leave_a_pareto_front(tmp_path: Path, layers: tuple[Layer, ...]) -> None:
    space = SPACE.replace("losses_and_a_rate_too_high", "loss_and_rate")
    named = ("precision", "recall", "seconds")
    fails = {"loss": "dice", "training.lr": 1e38}
    plan = SweepPlan(
        name="several",
        layers=layers,
        space=space,
        trials=3,
        sampler="nsga2",
        scheduler="none",
        objectives=named,
        points=(fails, *({"loss": loss, "training.lr": 2e-3} for loss in ("dice", "focal"))),
    )
    progress = runner.run(plan, tmp_path / "several", Driver(num_cpus=1))
    assert progress.is_finished
    ended = Ledger(tmp_path / "several" / "ledger.jsonl").outcomes
    assert ended["0001"].state == "failed"
    done = {id_: each for id_, each in ended.items() if each.state == "done"}
    assert len(done) == progress.done >= 2
    reached = {id_: samplers.objective_values(named, each.curve, each.metrics) for id_, each in done.items()}
    gains = {id_: (precision, recall, -seconds) for id_, (precision, recall, seconds) in reached.items()}
    front = [
        id_
        for id_, own in gains.items()
        if not any(all(map(operator.ge, other, own)) and other != own for other in gains.values())
    ]
    (table,) = [table for table in api.report("several").tables if table.name == "pareto_front"]
    assert sorted(table.data["trial"]) == sorted(front)
    for row in table.data.to_dict("records"):
        stored = [row["dev/precision"], row["dev/recall"], row["train/seconds"]]
        assert stored == pytest.approx(reached[str(row["trial"])])


@pytest.mark.ray
@pytest.mark.usefixtures("on_kept_ray", "uri")
def test_a_trial_that_takes_too_long_fails_and_spares_the_actor(tmp_path: Path, layers: tuple[Layer, ...]) -> None:
    long = (*layers, values_layer("settings", {"training.epochs": 10_000}))
    space = SPACE.replace("losses_and_a_rate_too_high", "two_rates")
    plan = SweepPlan(name="long", layers=long, space=space, trials=1, scheduler="none", trial_timeout=0.5)
    progress = runner.run(plan, tmp_path / "long", Driver())
    assert (progress.failed, progress.is_finished) == (1, True)
    reasons = [ended.failure for ended in Ledger(tmp_path / "long" / "ledger.jsonl").outcomes.values()]
    assert reasons == ["a trial must end within 0.5 s (--trial-timeout), and was still running"]


@pytest.fixture
def plan(layers: tuple[Layer, ...]) -> SweepPlan:
    return SweepPlan(name="sweep", layers=layers, space="a:b", trials=6, seeds=2, top=3)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """The second trial is the best; the fifth runs what the second does; the sixth failed after a high score."""
    ledger = Ledger(tmp_path / "ledger.jsonl")
    scores = {1: 0.5, 2: 0.9, 3: 0.8, 4: 0.7, 5: 0.9, 6: 0.95}
    for number, score in scores.items():
        trial = TrialSpec(id=f"000{number}", params={"training.lr": 2 if number == 5 else number}, seed=0)
        note(ledger, trial, score, "failed" if number == 6 else "pruned" if number == 3 else "done")
    return ledger


def test_the_best_that_differ_run_again(plan: SweepPlan, ledger: Ledger) -> None:
    cells = plan.reruns(ledger)
    assert [cell.id for cell in cells] == [
        *("0002-1001", "0003-1001", "0004-1001"),
        *("0002-1002", "0003-1002", "0004-1002"),
    ]
    assert [(cell.params["training.lr"], cell.seed, cell.rerun_of) for cell in cells[:2]] == [
        (2, 1001, "0002"),
        (3, 1001, "0003"),
    ]
    assert len(plan.placeholder_ids()) == len(cells)
    assert len(plan.model_copy(update={"trials": 2}).placeholder_ids()) == 4, "two seeds for each of two trials"
    assert list(plan.model_copy(update={"seed": 4}).rerun_seeds()) == [1005, 1006]
    assert {plan.config(cell).training.seed for cell in cells} == {1001, 1002}


def test_a_rerun_changes_neither_what_runs_again_nor_what_the_search_knows(
    plan: SweepPlan, ledger: Ledger, tmp_path: Path
) -> None:
    before = ledger.searched()
    cells = plan.reruns(ledger)
    for cell in cells[:4]:
        note(ledger, cell, 0.99)
    assert plan.reruns(ledger) == cells
    assert ledger.searched() == before
    assert plan.remaining(ledger_in(tmp_path), None)[0] == 2


def test_the_mean_over_the_other_seeds_ranks(plan: SweepPlan, ledger: Ledger) -> None:
    assert [one.id for one in ranking.ranked_in(ledger)] == ["0002", "0005", "0003", "0004", "0001"]
    for cell, score in zip(plan.reruns(ledger), (0.6, 0.7, 0.65, 0.4, 0.6, 0.75), strict=True):
        note(ledger, cell, score)
    found = ranking.ranked_in(ledger)
    assert [one.id for one in found] == ["0004", "0003", "0002", "0005", "0001"]
    assert [one.mean for one in found] == pytest.approx([0.7, 0.65, 0.5, 0.9, 0.5])


def test_a_rerun_that_failed_is_no_seed_to_leave_out(plan: SweepPlan, ledger: Ledger) -> None:
    for cell in plan.reruns(ledger):
        failed = cell.id == "0002-1002"
        note(ledger, cell, None if failed else 0.9 if cell.rerun_of == "0002" else 0.5, "failed" if failed else "done")
    assert [one.id for one in ranking.ranked_in(ledger)] == ["0003", "0004", "0002", "0005", "0001"]


def test_a_sweep_grows_by_seeds(plan: SweepPlan) -> None:
    assert not plan.model_copy(update={"seeds": 3, "top": 5}).changed(plan)
    assert plan.model_copy(update={"seeds": 1, "trials": 9}).changed(plan)
    assert plan.model_copy(update={"seed": 1, "trials": 9}).changed(plan)


def test_the_number_of_the_best_counts_with_seeds_alone(plan: SweepPlan, ledger: Ledger) -> None:
    """`resume --seeds 3 --top 3` was refused for the default of 5, which nobody had asked for."""
    alone = plan.model_copy(update={"seeds": 0, "top": 5})
    grown = alone.grown(ledger, None, 0, 3, 3)
    assert (grown.seeds, grown.top, grown.changed(alone)) == (3, 3, [])
    with pytest.raises(InputError, match="--seeds and --top must be at least those of sweep, 2 and 3, got 2 and 2"):
        plan.grown(ledger, None, 0, None, 2)
    with pytest.raises(InputError, match="--top must come with --seeds"):
        alone.grown(ledger, None, 0, None, 8)


def test_the_number_of_trials_has_a_bound(plan: SweepPlan, ledger: Ledger) -> None:
    """The ids of 1e20 trials were made for a minute and a half, without a word."""
    assert plan.grown(ledger, None, 2, None, None).trials == plan.trials + 2
    with pytest.raises(ConfigError, match=r"trials: must be less than or equal to 1000000, got "):
        plan.grown(ledger, None, 10**20, None, None)
