"""What MLflow shows of a whole study or sweep: names that it accepts for each arm, and the note with the verdict."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from mlflow.utils.validation import _validate_metric

from analysis.outcome import metrics, note, summary
from analysis.report import report
from tests.analysis.frames import study, sweep

CELLS = [
    {"arm": arm, "seed": seed, "metrics.test/f1": 0.5 + added + seed / 1000 * (1 + added)}
    for arm, added in (("plain", 0.0), ("dice, 1 hard", 0.1))
    for seed in range(1, 6)
]


def test_each_arm_of_a_study_is_a_metric_with_its_interval() -> None:
    found, arms = metrics(study(CELLS)), ("plain", "dice 1 hard")
    assert set(found) == {f"test/f1{bound}/{arm}" for bound in ("", "_low", "_high") for arm in arms}
    assert found["test/f1/plain"] == pytest.approx(0.503)
    assert found["test/f1_low/plain"] < 0.503 < found["test/f1_high/plain"]
    on_two = metrics(study([cell | {"tags.data": data} for cell in CELLS for data in ("a", "b")]))
    means = {name for name in on_two if name.startswith("test/f1/")}
    assert means == {f"test/f1/{data}/{arm}" for data in ("a", "b") for arm in arms}


def named(*arms: str, data: tuple[str, ...] = ("a",)) -> list[str]:
    """The names of the means of a study of the arms, each of which MLflow must accept."""
    cells = [cell | {"arm": arm, "tags.data": name} for arm in arms for name in data for cell in CELLS[:5]]
    found = metrics(study(cells))
    for name, value in found.items():
        _validate_metric(name, value, 0, 0)
    return sorted(name for name in found if name.startswith("test/f1/"))


def test_arms_that_differ_only_in_what_mlflow_refuses_have_metrics_of_their_own() -> None:
    """`gamma<1` and `gamma>1` were one metric, `gamma1`, with the score of one of them."""
    assert named("plain", "gamma<1", "gamma>1", "a/b", "dice, 1 hard") == [
        "test/f1/a/b",
        "test/f1/dice 1 hard",
        "test/f1/gamma 1. a3134ffa",
        "test/f1/gamma 1. a702e5b5",
        "test/f1/plain",
    ]
    assert "test/f1/gamma1" in named("plain", "gamma<1", "gamma1"), "a name without such characters stays"


def test_no_name_of_an_arm_or_data_set_makes_mlflow_refuse_the_outcome() -> None:
    """A study that had ended could not be stored, nor its report written, for an arm such as `lr//2`."""
    assert named("plain", "a/../b", "lr//2", "dice/", "<>") == [
        "test/f1/. fe314575",
        "test/f1/a b. 684c7f58",
        "test/f1/dice. 8c80b520",
        "test/f1/lr 2. 8ad3ade3",
        "test/f1/plain",
    ]
    assert len(named("plain", "..", ".", f"{'a/' * 200}b", f"{'a/' * 200}c")) == 5
    assert len(named("plain", "a" * 170, "a" * 169 + "b", data=("/home/" + "c" * 170, "/home/" + "d" * 170))) == 6


def test_the_best_trial_of_a_sweep_is_a_metric_as_it_is_of_a_trial() -> None:
    trials = [{"metrics.dev/best_f1": score, "tags.loss": "dice"} for score in (0.25, 0.75)]
    assert metrics(sweep(trials)) == {"dev/best_f1": 0.75}


def test_the_note_has_the_users_own_before_the_verdict() -> None:
    """Finds Markdown of the user's that is escaped, and names and intervals that are taken for Markdown."""
    made = study(CELLS)
    headline = note(made, "study").splitlines()[0]
    assert headline.startswith(r"**Better than plain on this test set: dice, 1 hard +10.03 \[")
    assert "\n- All 10 runs finished." in note(made, "study")
    made.frame.loc[made.frame["id"] == "study", "tags.note"] = "*mine*"
    assert note(made, "study").split("\n\n")[:2] == ["*mine*", headline]


def test_a_parent_whose_runs_are_not_stored_yet_has_only_the_users_note() -> None:
    """It ended the command that had run the search."""
    assert note(sweep([]), "sweep") == ""


def cells(num_seeds: int, gain: float, **columns: Any) -> list[dict[str, Any]]:
    return [
        {"arm": arm, "seed": seed, "metrics.test/f1": 0.5 + seed / 1000 + added + (seed % 2) / 1000 * added, **columns}
        for arm, added in (("plain", 0.0), ("dice", gain))
        for seed in range(1, num_seeds + 1)
    ]


def test_the_warning_of_few_items_is_repeated() -> None:
    """One that the study stored at its start: for dev too, of which a report knows nothing else."""
    made = study(cells(5, 0.1))
    made.frame.loc[made.frame["kind"] == "study", "tags.few_items"] = "Warning: a\nWarning: b"
    assert [sentence for sentence in summary(made) if sentence.startswith("Warning")] == ["Warning: a", "Warning: b"]


def test_a_sweep_of_few_trials_says_why_it_shows_no_importance() -> None:
    trials = [{"metrics.dev/best_f1": number / 100, "tags.loss": "dice"} for number in range(20)]
    few = list(summary(sweep([*trials[:19], {"metrics.dev/best_f1": 0.5, "tags.loss": "focal"}])))
    assert any(sentence.endswith("needs 20 scored trials, and the sweep has dice 19, focal 1.") for sentence in few)
    assert not any("importance" in sentence for sentence in summary(sweep(trials)))


def test_what_collapsed_and_what_failed_is_counted() -> None:
    rows = cells(3, 0.1)
    rows[3] |= {"tags.collapsed": "true"}
    rows[4] |= {"state": "failed", "tags.collapsed": "true"}
    rows[5] |= {"state": None}
    sentences = list(summary(study(rows)))
    assert sentences[-1] == "Of 6 runs, 1 failed and 1 unfinished; they are listed below."


def test_reruns_are_counted_as_the_table_of_failed_runs_lists_them() -> None:
    """`All 2 runs finished.` stood above a table of failed reruns."""
    made = sweep([{"metrics.dev/f1": 0.5}, {"metrics.dev/f1": 0.6}, {"kind": "rerun", "state": "failed"}])
    assert [*summary(made)][-1] == "Of 3 runs, 1 failed; they are listed below."


def test_a_sweep_tells_of_its_best_trial() -> None:
    trials = [{"params.loss": loss, "metrics.dev/f1": score} for loss, score in (("dice", 0.5), ("focal", 0.75))]
    first, second, *_ = summary(sweep([*trials, {"params.loss": "tversky"}]))
    assert first == "The best of 3 trials is 0002, with focal: dev/f1 (%) 75.00."
    assert "selected it by this same score" in second
    tied = [*summary(sweep([*trials, {"params.loss": "tversky", "metrics.dev/f1": 0.75}]))]
    assert tied[1] == "2 trials have this very score."
    assert list(summary(sweep([{"params.loss": "dice", "state": "failed"}]))) == [
        "Of 1 run, 1 failed; they are listed below."
    ]


def test_the_best_trial_is_the_one_that_the_sweep_ranks_first() -> None:
    trials = [{"params.loss": loss, "metrics.dev/f1": score} for loss, score in (("dice", 0.5), ("focal", 0.75))]
    reruns = [
        {"id": f"{trial}-{seed}", "kind": "rerun", "seed": seed, "tags.rerun_of": trial, "metrics.dev/f1": score}
        for trial, scores in (("0001", (0.5, 0.6)), ("0002", (0.25, 0.5)))
        for seed, score in enumerate(scores, start=1001)
    ]
    first, second, *_ = summary(sweep([*trials, *reruns]))
    assert first == "The best of 2 trials is 0001, with dice: dev/f1 (%) 55.00."
    assert "selected it by the mean over 2 other seeds" in second
    lost = [trial | {"params.loss": None} for trial in trials]
    first, second, *_ = summary(sweep([*lost, reruns[0]]))
    assert first.startswith("The best of 2 trials is 0001, with unknown: "), "deleted in MLflow"
    assert "over 1 other seed on dev" in second


def test_an_arm_that_failed_with_every_seed_takes_none_from_the_others() -> None:
    rows = [*cells(5, 0.1), *({"arm": "lost", "seed": seed, "state": "failed"} for seed in range(1, 6))]
    made = report(study(rows))
    assert made.cards[0].sentences[0].startswith("Better than plain on this test set: dice ")
    assert "Not compared, with fewer than 5 seeds: lost." in made.summary


def test_a_search_for_several_objectives_has_no_best_trial() -> None:
    """The summary, and so MLflow's note, named one by a score that was not searched for alone."""
    made = sweep([{"metrics.dev/best_f1": score, "tags.loss": "dice"} for score in (0.4, 0.5)])
    assert any(sentence.startswith("The best of 2 trials is 0002") for sentence in summary(made))
    frame = made.frame.assign(**{"tags.objectives": made.frame["kind"].map({"sweep": "dev/precision dev/recall"})})
    of_two = replace(made, frame=frame)
    assert not any("best" in sentence or "importance" in sentence for sentence in summary(of_two))
    assert not metrics(of_two)
    made_of_two = report(of_two)
    names = [*(table.name for table in made_of_two.tables), *(figure.name for figure in made_of_two.figures)]
    assert not {"best_trials", "best_so_far"} & set(names)


def test_a_trial_that_has_not_ended_has_no_score_yet() -> None:
    """The tables showed its score as the best one, beside a summary that does not count it."""
    trials = [
        {"metrics.dev/best_f1": score, "state": state, "tags.loss": "dice"}
        for score, state in ((0.9, None), (0.5, "done"))
    ]
    made = report(sweep(trials))
    tables = {table.name: table for table in made.tables}
    assert tables["losses"].data["best"].tolist() == [0.5]
    assert len(tables["without_score"].data) == 1, "as the summary says"


def test_the_best_trial_has_the_format_of_the_table() -> None:
    """A negative score among the others makes it no percentage."""
    trials = [{"metrics.dev/best_mcc": score, "tags.loss": "dice"} for score in (0.52, -0.01)]
    assert "dev/mcc 0.52." in next(iter(summary(sweep(trials, metric="dev/mcc"))))


def test_opposite_findings_on_two_data_sets_stand_in_one_sentence() -> None:
    """Each data set had its winner, and no sentence said that they contradict each other."""

    def on(data: str, better: str, worse: str) -> list[dict[str, Any]]:
        means = {"plain": 0.7, better: 0.8, worse: 0.6}
        noise = {arm: [0.001 * (seed * place % 4) for seed in range(6)] for place, arm in enumerate(means, start=1)}
        return [
            {"arm": arm, "seed": seed, "tags.data": data, "metrics.test/f1": mean + noise[arm][seed]}
            for arm, mean in means.items()
            for seed in range(6)
        ]

    sentences = [*summary(study([*on("a", "dice", "focal"), *on("b", "focal", "dice")]))]
    assert {
        "dice is better on a and worse on b.",
        "focal is better on b and worse on a.",
        "Other arms win elsewhere: dice on a; focal on b.",
    } <= set(sentences)
