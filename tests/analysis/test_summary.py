"""The sentences of a report: the winner as the table names it, the seeds, what collapsed and what failed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from analysis.outcome import metrics
from analysis.report import report
from analysis.summary import summary
from tests.analysis.frames import study, sweep


def cells(num_seeds: int, gain: float, **columns: Any) -> list[dict[str, Any]]:
    return [
        {"arm": arm, "seed": seed, "metrics.test/f1": 0.5 + seed / 1000 + added + (seed % 2) / 1000 * added, **columns}
        for arm, added in (("plain", 0.0), ("dice", gain))
        for seed in range(1, num_seeds + 1)
    ]


def test_the_winner_is_the_one_that_the_table_names() -> None:
    made = report(study(cells(10, 0.1)))
    first, better, levels, *_, last = made.summary
    assert first.startswith("Winner: dice, significantly better than every other arm")
    assert first in made.tables[0].notes
    assert better == "Significantly better than plain on this test set (Holm p <= 0.05): dice +10.00."
    assert levels == "test/f1 (%), 10 seeds: plain has 50.55 [50.33, 50.77]."
    assert last == "All 20 runs finished."
    assert f"\n\n{first}\n" in made.text()


def test_the_warning_of_few_items_is_repeated() -> None:
    """One that the study stored at its start: for dev too, of which a report knows nothing else."""
    made = study(cells(5, 0.1))
    made.frame.loc[made.frame["kind"] == "study", "tags.few_items"] = "Warning: a\nWarning: b"
    assert [sentence for sentence in summary(made) if sentence.startswith("Warning")] == ["Warning: a", "Warning: b"]


def test_each_data_set_has_its_own_sentences() -> None:
    sentences = list(summary(study([*cells(5, 0.1, **{"tags.data": "a"}), *cells(5, -0.1, **{"tags.data": "b"})])))
    assert sentences[0].startswith("On a: Winner: dice")
    assert any(sentence.startswith("On b: Winner: plain") for sentence in sentences)


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
    assert "Runs that predict one class only: dice (1 of 2)." in sentences
    assert sentences[-1] == "Of 6 runs, 1 failed and 1 unfinished; they are listed below."


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


def test_an_arm_that_failed_with_every_seed_takes_none_from_the_others() -> None:
    rows = [*cells(5, 0.1), *({"arm": "lost", "seed": seed, "state": "failed"} for seed in range(1, 6))]
    made = report(study(rows))
    assert made.summary[0].startswith("Winner: dice, significantly better than every compared arm")
    assert "Not compared, with fewer than 5 seeds shared with plain: lost with 0 seeds." in made.summary


def test_a_search_for_several_objectives_has_no_best_trial() -> None:
    """The summary, and so MLflow's note, named one by a score that was not searched for alone."""
    made = sweep([{"metrics.dev/best_f1": score, "tags.loss": "dice"} for score in (0.4, 0.5)])
    assert any(sentence.startswith("The best of 2 trials is 0002") for sentence in summary(made))
    frame = made.frame.assign(**{"tags.objectives": made.frame["kind"].map({"sweep": "dev/precision dev/recall"})})
    of_two = replace(made, frame=frame)
    assert not any("best" in sentence for sentence in summary(of_two))
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
