"""A score that is minimised: what a sweep keeps, ranks, runs again, shows and exports is the lowest cost."""

from __future__ import annotations

from pathlib import Path

import optuna
import pytest

from analysis.comparison import comparisons
from dice_ray import api
from dice_ray.api.reports import findings
from dice_ray.api.results import _best_of
from dice_ray.config.load import Layer, values_layer
from dice_ray.config.schema import RunConfig
from dice_ray.errors import ConfigError
from dice_ray.files import runs_folder
from dice_ray.run.build import objective
from dice_ray.run.driver import Driver
from dice_ray.tasks.text_classification import SentencePairConfig
from dice_ray.tracking import schema
from dice_ray.tracking.reader import curves, read
from dice_ray.tracking.writer import Writer
from dice_ray.tuning import overview, ranking, runner
from dice_ray.tuning.export import preset
from dice_ray.tuning.ledger import Ledger, TrialSpec
from dice_ray.tuning.plan_file import store
from dice_ray.tuning.recorder import Recorder
from dice_ray.tuning.study import StudyPlan
from dice_ray.tuning.sweep import SweepPlan
from dice_ray.tuning.trial import TrialResult

pytestmark = pytest.mark.usefixtures("uri")

SPACE = f"{Path(__file__).with_name('spaces.py')}:rate"
FOCAL = TrialSpec(id="0001", params={"loss": "focal", "training.lr": 2e-3}, seed=0)
DICE = TrialSpec(id="0002", params={"loss": "dice", "training.lr": 1e-3}, seed=0)


DECISION = {"task.sentence_pair.decision.cost.false_negative": 10.0}
"""A missed positive costs 10, a false alarm 1."""


@pytest.fixture
def costs(layers: tuple[Layer, ...]) -> tuple[Layer, ...]:
    quick = {"data.source.synthetic.positive_share": 0.3, "training.epochs": 4, "training.batch_size": 16}
    return (*layers, values_layer("score", DECISION | quick))


def told(step: int, cost: float, pr_auc: float = 0.5, *, finished: bool = False) -> TrialResult:
    """A report of a trial, whose score is a gain."""
    metrics = {"dev/cost_tuned": cost, "dev/pr_auc": pr_auc, "dev/collapsed": 0.0}
    return {"score": -cost, "step": step, "metrics": metrics, "finished": finished}


@pytest.fixture
def swept(costs: tuple[Layer, ...]) -> SweepPlan:
    """A sweep whose first trial has the lowest cost twice, and the second one the highest."""
    plan = SweepPlan(name="swept", layers=costs, space=SPACE, trials=2, seeds=1, top=1)
    store(plan, folder := runs_folder() / "swept")
    with Writer("swept") as writer:
        recorder = Recorder(plan, Ledger(folder / "ledger.jsonl"), writer, plan.ids)
        recorder.open(())
        evaluations = ((9.0, 0.7), (4.0, 0.5), (4.0, 0.6), (7.0, 0.9)), ((8.0, 0.9), (6.0, 0.9))
        for trial, values in zip((FOCAL, DICE), evaluations, strict=True):
            recorder.started(trial)
            results = [told(step, *value) for step, value in enumerate(values, start=1)]
            for result in results:
                recorder.reported(trial.id, result)
                (running,) = recorder.counts.trials
                assert running.score == result["metrics"]["dev/cost_tuned"]
            recorder.ended(trial.id, {**results[-1], "finished": True})
        assert (recorder.counts.best_score, recorder.counts.best_params) == (4.0, FOCAL.params)
        recorder.close()
    return plan


def test_mlflow_has_the_lowest_cost_and_of_equal_ones_that_of_the_highest_pr_auc(swept: SweepPlan) -> None:
    """The value must be that of the checkpoint which the loop has kept."""
    points = curves("swept").query("metric == 'dev/best_cost_tuned'").set_index("id")
    assert points[["step", "value"]].to_dict("index") == {
        "0001": {"step": 3, "value": 4.0},
        "0002": {"step": 2, "value": 6.0},
    }
    assert read("swept").set_index("id").loc["swept", "tags.metric"] == "dev/cost_tuned"


def test_the_lowest_cost_ranks_first_is_run_again_and_kept(swept: SweepPlan) -> None:
    ledger = Ledger(runs_folder() / "swept/ledger.jsonl")
    assert [trial.id for trial in ranking.ranked_in(ledger)] == ["0001", "0002"]
    assert [trial.rerun_of for trial in swept.reruns(ledger)] == ["0001"]
    assert swept.retained(ledger) == {"0001"}
    trials = ranking.ranked_in_frame(read("swept"))
    assert [(trial.id, trial.mean) for trial in trials] == [("0001", 4.0), ("0002", 6.0)]
    assert [(run.run, run.score) for run in overview.compared("swept", read("swept"))] == [
        ("swept/0001", 4.0),
        ("swept/0002", 6.0),
    ]
    (line,) = overview.overview(["swept"])
    assert (line.metric, line.best) == ("dev/cost_tuned", 4.0)


def test_what_is_exported_has_the_costs_and_optuna_minimises_them(swept: SweepPlan) -> None:
    assert "\n# dev/cost_tuned 4.0000 with seed 0.\n" in preset(runs_folder() / "swept")
    api.export_optuna("swept", "study.db")
    study = optuna.load_study(study_name=None, storage="sqlite:///study.db")
    assert (study.direction.name, study.metric_names) == ("MINIMIZE", ["dev/cost_tuned"])
    assert (study.best_trial.user_attrs, study.best_value) == ({"trial": "0001"}, 4.0)
    assert study.best_trial.intermediate_values == {1: 9.0, 2: 4.0, 3: 4.0, 4: 7.0}


def test_the_best_arm_on_the_screen_of_a_study_has_the_lowest_cost(costs: tuple[Layer, ...], tmp_path: Path) -> None:
    arms = {"dice": {"loss": "dice"}, "focal": {"loss": "focal"}}
    plan = StudyPlan(name="study", layers=costs, arms=arms, baseline="dice", seeds=(1,))
    cells = plan.grid().cells
    with Writer("study") as writer:
        recorder = Recorder(plan, Ledger(tmp_path / "ledger.jsonl"), writer, [cell.id for cell in cells])
        recorder.open(())
        for cell, cost in zip(cells, (5.0, 3.0), strict=True):
            recorder.started(cell)
            recorder.reported(cell.id, told(5, cost))
            recorder.ended(cell.id, told(5, cost, finished=True))
        assert (recorder.counts.best_score, recorder.counts.best_arm) == (3.0, "focal")
        recorder.close()


def test_a_study_compares_a_tuned_score_by_the_metric_and_keeps_checkpoints_by_the_tuned_one(
    layers: tuple[Layer, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compared by `test/f1_tuned`, it would have no score at the threshold that was not declared."""
    monkeypatch.setattr(SentencePairConfig, "objective", lambda _: "f1_tuned")
    config = RunConfig.model_validate({"task": "sentence_pair", "data": {}})
    assert (objective(config), objective(config, "test")) == ("dev/f1_tuned", "test/f1")
    arms = {"dice": {"loss": "dice"}, "focal": {"loss": "focal"}}
    plan = StudyPlan(name="study", layers=layers, arms=arms, baseline="dice", seeds=(1,))
    cell = plan.grid().cells[0]
    metrics = {"dev/f1_tuned": 0.75, "dev/f1": 0.5, "dev/collapsed": 0.0}
    result = {"score": 0.75, "step": 5, "metrics": metrics, "finished": True, "test": {"test/f1": 0.25}}
    with Writer("study") as writer:
        recorder = Recorder(plan, Ledger(tmp_path / "ledger.jsonl"), writer, [cell.id])
        recorder.open(())
        recorder.started(cell)
        recorder.reported(cell.id, result)
        recorder.ended(cell.id, result)
        recorder.close()
    rows = read("study").set_index("id")
    assert rows.loc["study", schema.tag_column(schema.METRIC)] == "test/f1"
    assert (rows.loc[cell.id, "metrics.dev/best_f1_tuned"], rows.loc[cell.id, "metrics.test/f1"]) == (0.75, 0.25)


def test_all_trials_have_the_costs_of_the_sweep(costs: tuple[Layer, ...]) -> None:
    """A search of what an error costs would find that cheap errors cost least."""
    plan = SweepPlan(name="costs", layers=costs, space=SPACE, trials=2)
    cheap = TrialSpec(id="0001", params=dict.fromkeys(DECISION, 5.0), seed=0)
    with pytest.raises(
        ConfigError, match=r"must keep the metric .*, cost_tuned \(.*false_negative=10.0\), got .*=5.0\)"
    ):
        plan.config(cheap)
    assert plan.config(FOCAL).task.objective() == "cost_tuned"


def test_a_run_trained_alone_ends_with_its_lowest_cost() -> None:
    """The last line named the highest one, which is not that of the checkpoint."""
    quick = {"training.epochs": 4, "training.lr": 5e-3, "training.batch_size": 16, "training.evaluations": 4}
    data = {"data.source.synthetic.size": 200, "data.source.synthetic.positive_share": 0.3}
    result = api.train("synthetic_pairs", DECISION | quick | data, name="alone")
    points = curves("train").pivot_table("value", "step", "metric")
    first = points.sort_values("dev/cost_tuned").iloc[0]
    assert points["dev/cost_tuned"].nunique() > 1
    assert result.best.line.startswith(f"alone has dev/cost_tuned {first['dev/cost_tuned']:.4f}")
    (row,) = read("train").to_dict("records")
    assert row["metrics.dev/best_cost_tuned"] == first["dev/cost_tuned"] == points["dev/cost_tuned"].min()
    assert api.evaluate("alone", "dev").scores.metrics["cost"] == first["dev/cost"]


def test_runs_trained_alone_stand_in_the_order_of_their_costs() -> None:
    with Writer("train") as writer:
        for id_, value in (("high", 9.0), ("low", 4.0)):
            writer.open(id_, name=id_, params={}, tags={schema.KIND: "run", schema.METRIC: "dev/cost_tuned"})
            writer.metrics(id_, 9, {"dev/best_cost_tuned": value})
    assert [(run.run, run.score) for run in overview.compared("train", read("train"))] == [("low", 4.0), ("high", 9.0)]


@pytest.mark.ray
@pytest.mark.usefixtures("on_kept_ray")
def test_a_sweep_finds_the_lowest_cost(costs: tuple[Layer, ...]) -> None:
    """Where trials report costs to Optuna, the pruner stops the better half of them, and the worst is run again."""
    space = SPACE.replace(":rate", ":four_rates")
    plan = SweepPlan(name="costs", layers=costs, space=space, trials=4, sampler="brute_force", seeds=1, top=1)
    counts = runner.run(plan, folder := runs_folder() / "costs", Driver())
    ledger = Ledger(folder / "ledger.jsonl")
    lowest = {
        id_: min(metrics["dev/cost_tuned"] for metrics in outcome.metrics)
        for id_, outcome in ledger.searched().outcomes.items()
    }
    first = min(lowest, key=lambda id_: lowest[id_])
    assert len(set(lowest.values())) > 1
    assert (counts.best_score, counts.best_params) == (lowest[first], ledger.specs[first].params)
    assert [spec.rerun_of for spec in ledger.specs.values() if spec.rerun_of] == [first]
    rows = read("costs").set_index("id")
    assert {id_: rows.loc[id_, "metrics.dev/best_cost_tuned"] for id_ in lowest} == lowest
    assert [path.parent.name for path in folder.glob("trials/*/best.pt") if "-" not in path.parent.name] == [first]
    assert _best_of("costs", findings("costs")).name == f"costs/{first}"


@pytest.mark.ray
@pytest.mark.usefixtures("on_kept_ray")
def test_a_study_compares_the_cost_of_the_decision(costs: tuple[Layer, ...]) -> None:
    """The untuned cost, at .5, is shown and not compared; checkpoints are those of the lowest tuned one on dev."""
    arms = {"dice": {"loss": "dice"}, "cross_entropy": {"loss": "cross_entropy"}}
    plan = StudyPlan(
        name="study", layers=costs, arms=arms, baseline="cross_entropy", seeds=(1,), looks=(1,), threshold="tuned"
    )
    assert runner.run(plan, runs_folder() / "study", Driver()).is_finished
    (compared,) = comparisons(findings("study"))
    assert (compared.metric, compared.lower_is_better) == ("test/cost", True)
    rows = read("study").set_index("id")
    of_cells = rows[rows["kind"] == "cell"].set_index("arm")
    points = curves("study").query("metric == 'dev/cost_tuned'").groupby("id")["value"].min()
    assert sorted(of_cells["metrics.dev/best_cost_tuned"]) == sorted(points)
    assert {row.arm: row.score.mean for row in compared.primary} == of_cells["metrics.test/cost_tuned"].to_dict()
    assert {row.arm: row.score.mean for row in compared.arms if row.name in arms} == of_cells[
        "metrics.test/cost"
    ].to_dict()
    (level,) = {row.score.mean for row in compared.arms if row.name == "constant predictor"}
    assert level == of_cells["metrics.test/constant_cost"].iloc[0]
