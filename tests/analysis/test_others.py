"""Runs that other programs made: which columns are taken for what, what is said of them, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd
import pytest

from analysis.comparison import comparisons
from analysis.frames import Findings
from analysis.others import Columns, findings_of
from analysis.outcome import summary
from analysis.report import report
from analysis.tables.runs import all_runs
from analysis.verdict import verdicts
from dice_ray.errors import DiceRayError

NOISE = (0.0, 0.004, -0.003, 0.001, -0.002)


def table(gains: Mapping[str, float] | None = None, seeds: Sequence[Any] = range(5), **columns: Any) -> pd.DataFrame:
    """Runs of arms over seeds; the gains of an arm are about its own, and `columns` are by arm or the same for all."""
    gains = {"ce": 0.0, "dice": 0.03, "focal": 0.0} if gains is None else gains
    return pd.DataFrame(
        [
            {"loss": arm, "seed": seed, "f1": 0.6 + gain + NOISE[(number + place) % 5] + number / 100}
            | {name: value[arm] if isinstance(value, dict) else value for name, value in columns.items()}
            for place, (arm, gain) in enumerate(gains.items())
            for number, seed in enumerate(seeds)
        ]
    )


def made(runs: pd.DataFrame, metric: str = "f1", **asked: Any) -> Findings:
    return findings_of(runs, Columns(metric, **asked), "mine", "a table")


def said(findings: Findings) -> str:
    return "\n".join(summary(findings))


def test_a_table_has_the_verdict_of_a_study() -> None:
    """Finds scores that are given to other arms or seeds, and words that speak of a study."""
    found = made(table())
    (compared,) = comparisons(found)
    assert {arm.name: round(arm.score.mean, 4) for arm in compared.arms} == {"ce": 0.62, "dice": 0.65, "focal": 0.62}
    (verdict,) = verdicts(found)
    assert (verdict.answer, verdict.use) == ("YES", "dice")
    assert verdict.headline.startswith("Better than ce on this test set: dice +3.00")
    text = report(found).text()
    categories = table().astype({"loss": "category", "seed": "category"})
    assert said(made(categories)) == said(found), "as Parquet files hold them"
    for word in ("this study", "items.csv", "No arm is tuned", "collapsed", "constant predictor"):
        assert word not in text


@pytest.mark.parametrize(
    ("names", "arm", "seed"),
    [
        ({}, "loss", "seed"),
        ({"loss": "params.trainer.loss", "seed": "params.trainer.seed", "f1": "metrics.f1"}, "trainer.loss", "seed"),
        ({"loss": "sampler", "seed": "fold"}, "sampler", "fold"),
        ({"loss": "sampler", "seed": "random_state"}, "sampler", "random_state"),
        ({"seed": "split"}, "loss", "split"),
    ],
)
def test_arm_and_seed_are_guessed_and_said(names: dict[str, str], arm: str, seed: str) -> None:
    """Finds a guess by the order of columns, and one that is not said."""
    text = said(made(table(size=7, minutes=3.5).rename(columns=names)))
    assert f"arms by {arm} (guessed" in text
    assert f"{seed} (guessed" in text
    assert "baseline ce (guessed" in text


def test_an_arm_without_a_name_is_the_column_that_leaves_no_run_twice() -> None:
    """Finds a guess that takes any column with few values: here lr varies, but each arm and seed has both."""
    runs = table().rename(columns={"loss": "head"})
    runs["fp16"] = [number % 2 for number in range(len(runs))]
    assert "arms by head (guessed" in said(made(runs))
    with pytest.raises(DiceRayError, match=r"--arm .*head \(3 values\), fp16 \(2 values\), other"):
        made(runs.assign(other=runs["head"] + "!"))
    both = pd.concat([runs.assign(data=data) for data in ("mrpc", "qqp")])
    assert "arms by head (guessed" in said(made(both, by="data"))
    own = table().rename(columns={"loss": "head"}).assign(lr=range(15))  # each run has another
    assert "arms by head (guessed" in said(made(own))


def test_the_baseline_is_named_so_or_the_first() -> None:
    """Finds the first arm in place of one that is called a baseline, and any other where none is."""
    assert "baseline ce (" in said(made(table({"dice": 0.0, "ce": 0.0})))
    assert "baseline b (" in said(made(table({"b": 0.0, "a": 0.0})))


def test_only_the_runs_that_were_chosen_are_compared() -> None:
    """Finds a choice that is checked and not made, and a run without a seed, or without a finite score, that counts."""
    runs = pd.concat([table(data="mrpc"), table({"ce": 0.1, "dice": 0.1}, data="qqp")])
    runs.loc[len(runs)] = {"loss": "ce", "f1": 0.9, "data": "mrpc"}
    found = made(runs, where={"data": "mrpc"}, arm="loss", seed="seed")
    assert comparisons(found)[0].reference.score.mean == pytest.approx(0.62)
    assert "Compared are 15 runs" in said(found)
    assert "1 of ce" in said(made(table().replace({"f1": {0.6: math.inf}})))


def test_settings_are_texts_or_missing() -> None:
    """Finds a report that ends in a TypeError where alpha is a text, and `nan` in the CSV file of all runs."""
    alphas = {"ce": math.nan, "a": 0.25, "b": 0.5, "c": 0.75}
    paths = {"alpha": alphas, "beta": {arm: 1 - of for arm, of in alphas.items()}, "scope": "batch"}
    columns: dict[str, Any] = {f"loss.tversky.{name}": values for name, values in paths.items()}
    found = made(table(dict.fromkeys(alphas, 0.0), **columns), arm="loss", seed="seed")
    assert "tversky_alpha" in {figure.name for figure in report(found).figures}
    assert "nan" not in all_runs(found)[0].csv()


def test_measurements_of_a_table_are_no_settings() -> None:
    """Finds another score that is listed with what the runs were given."""
    frame = made(table(layers=2).assign(recall=[number / 16 for number in range(15)])).frame
    assert [name for name in frame if str(name).startswith("params.")] == ["params.layers"]


def test_a_column_without_a_value_is_no_setting_that_differs() -> None:
    """As an empty one of a CSV file, or a parameter of the parent run alone, which has no seed."""
    assert said(made(table(note=math.nan), arm="loss", seed="seed")) == said(made(table(), arm="loss", seed="seed"))


def test_a_number_is_named_as_a_user_writes_it() -> None:
    """Finds an arm called 2.0 where a missing value has made the column one of fractions."""
    runs = table({"1": 0.0, "2": 0.0}).astype({"loss": float}).rename(columns={"loss": "layers"})
    assert "baseline 1 (" in said(made(runs, arm="layers"))


def test_the_direction_of_an_optuna_study_is_for_metrics_that_are_not_known() -> None:
    """Finds a lower F1 that wins, and a study of other values that is passed over."""
    runs = table({"dice": 0.1, "ce": 0.0}, **{"tags.direction": "MINIMIZE"})
    assert verdicts(made(runs))[0].use == "dice"
    assert verdicts(made(runs.rename(columns={"f1": "value"}), "value"))[0].use.startswith("ce")


SENTENCES = {
    "settings": (table(lr={"ce": 1e-5, "dice": 3e-5, "focal": 1e-5}), "ARMS DIFFER IN lr TOO"),
    "of one arm": (table(gamma={"ce": math.nan, "dice": math.nan, "focal": 2.0}), ""),
    "a label": (table(title={"ce": "ce large", "dice": "dice large", "focal": "focal large"}), ""),
    "a folder": (table(output_dir={"ce": "a", "dice": "b", "focal": "c"}), ""),
    "searched": (table().assign(lr=[1e-5, 3e-5, 1e-5, 3e-5, 1e-5] * 3), ""),
    "repeated": (
        pd.concat([table(data="mrpc"), table(data="qqp").head(2)]),
        "Repeated: ce with seed 0, ce with seed 1; of each the latest run with a score counts. They differ in data: ",
    ),
    "alone": (
        pd.concat([table(), table({"late": 0.1}, range(10, 15))]),
        "Not paired, since they share no seed with ce: late.",
    ),
    "failed": (
        table().assign(status=["FAILED", "RUNNING"] + ["FINISHED"] * 13),
        "Failed, not ended or without the score: 2 runs (2 of ce).",
    ),
    "no arm": (pd.concat([table(), pd.DataFrame([{"f1": 0.9}])]), "Left out: 1 run without a value of loss or seed."),
}


@pytest.mark.parametrize("name", SENTENCES)
def test_what_is_wrong_with_the_runs_is_said(name: str) -> None:
    """Finds each fault that is passed over, and settings that are named where they are the arm's own or a label."""
    runs, sentence = SENTENCES[name]
    text = said(made(runs, arm="loss", seed="seed"))
    assert sentence in text
    assert ("DIFFER" in text) == (name in ("settings", "repeated"))


@pytest.mark.parametrize("column", ["status", "state", "State"])
def test_the_score_of_a_run_that_failed_or_goes_on_does_not_count(column: str) -> None:
    """Finds its last value in a mean, as a killed run has one too, and a state that is taken for a setting."""
    runs = table().assign(**{column: ["KILLED", "RUNNING"] + ["FINISHED"] * 13})
    (compared,) = comparisons(made(runs))
    assert compared.reference.score.num == 3


def test_the_latest_run_of_an_arm_and_seed_counts() -> None:
    """Finds the mean of both, and the first one."""
    again = table().head(1).assign(f1=0.9)
    (compared,) = comparisons(made(pd.concat([table(), again])))
    assert compared.reference.score.mean == pytest.approx(0.62 + 0.3 / 5)


@pytest.mark.parametrize(
    ("metric", "lower", "best", "word"),
    [
        ("eval_loss", None, "ce", "eval_loss (lower is better)"),
        ("eval_f1", None, "dice", "eval_f1 (%)"),
        ("reward", None, "dice", "A higher reward is taken as better"),
        ("reward", True, "ce", "reward (lower is better)"),
        ("negative_loss", False, "dice", "negative_loss"),
        ("neg_log_loss", None, "dice", "neg_log_loss"),
        ("val/brier", None, "ce", "val/brier"),
    ],
)
def test_the_direction_of_a_metric_is_known_or_said(metric: str, lower: bool | None, best: str, word: str) -> None:
    """Finds an arm that wins by the larger loss."""
    found = made(table({"dice": 0.1, "ce": 0.0}).rename(columns={"f1": metric}), metric, lower_is_better=lower)
    assert max(verdicts(found)[0].use, "ce, since", key=lambda use: use.startswith(best)).startswith(best)
    assert word in report(found).text()


def test_the_command_has_what_was_asked_for_and_what_was_guessed() -> None:
    """Finds an option that a repetition would lack."""
    asked = Columns("f1", by="data", where={"team": "a b"}, lower_is_better=True)
    found = findings_of(table(data="mrpc", team="a b"), asked, "mine", "x.csv", ["dice-ray", "compare", "x.csv"])
    assert found.frame["tags.command"].iloc[0] == (
        "dice-ray compare x.csv --arm loss --seed seed --metric f1 --baseline ce --by data --where 'team=a b' "
        "--lower-is-better"
    )


@pytest.mark.parametrize(
    "seeds",
    [[*"abcde"], [2**53 + number for number in range(5)], [f"1234567890123456789{number}" for number in "13579"]],
)
def test_seeds_may_be_names_or_large_and_scores_percent(seeds: list[Any]) -> None:
    """Finds seeds that are lost with their names or merged by rounding, and intervals of percent cut off at 1."""
    runs = table(seeds=seeds)
    (compared,) = comparisons(made(runs.assign(f1=100 * runs["f1"])))
    dice = next(arm for arm in compared.arms if arm.name == "dice")
    assert dice.difference
    assert (round(dice.difference.interval.mean, 6), dice.num_shared) == (3.0, 5)
    assert "Not paired" not in said(made(runs))


def test_places_are_compared_by_themselves() -> None:
    """Finds a comparison over data sets in one, and a warning that is that of another place."""
    lr = {"ce": 1.0, "dice": 2.0, "focal": 1.0}
    found = made(pd.concat([table(data="mrpc"), table(data="qqp", lr=lr)], ignore_index=True), by="data")
    mrpc, qqp = verdicts(found)
    assert (mrpc.place, qqp.place) == ("mrpc", "qqp")
    assert "lr" not in mrpc.headline
    assert "ARMS DIFFER IN lr" in qqp.headline


def _refused() -> Iterator[tuple[str, pd.DataFrame, dict[str, Any], str]]:
    yield "metric", table(), {"metric": "ff1"}, r"no column named 'ff1'; did you mean 'f1'"
    yield "column", table(), {"arm": "los"}, r"did you mean 'loss'"
    yield "baseline", table(), {"baseline": "cee"}, r"did you mean 'ce'"
    yield "where", table(), {"where": {"loss": "dise"}}, r"did you mean 'dice'"
    yield "half", table().assign(f1=[0.5, math.nan, math.nan] * 5), {}, r"10 of 15 that finished lack it"
    yield "one arm", table({"ce": 0.0}), {"arm": "loss"}, r"two arms or more, and loss is 'ce' in all"
    yield "one seed", table(seeds=[42]), {"arm": "loss"}, r"several seeds, and seed is 42 in all"
    yield "no seed", table().drop(columns="seed"), {}, r"give its column by --seed \(candidates: loss \(3 values\)\)"
    yield "text", table().assign(f1=["71,2"] + [0.5] * 14), {}, r"must be a number, got '71,2' in row 1"
    yield "empty", table().head(0), {}, r"must have runs"
    yield "twice", table().set_axis(["loss", "seed", "seed"], axis=1), {"metric": "seed"}, r"has two named seed"
    yield "row", table().replace({"loss": {"dice": "ce (tuned threshold)"}}), {}, r"no row .* has, got 'ce \(tuned thr"
    yield "none done", table().assign(status="FAILED"), {}, r"none of 15 runs has"


@pytest.mark.parametrize(
    ("runs", "asked", "message"), [each[1:] for each in _refused()], ids=[e[0] for e in _refused()]
)
def test_runs_that_cannot_be_compared_are_refused(runs: pd.DataFrame, asked: dict[str, Any], message: str) -> None:
    """Finds a verdict on nothing, or an error that does not say what to do."""
    with pytest.raises(DiceRayError, match=message):
        made(runs, **asked)
