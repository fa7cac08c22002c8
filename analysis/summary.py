"""The report's summary in sentences: the winner and how certain it is, the best trial, and runs without a score."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.best_trial import best_trial
from analysis.budget import at_budget
from analysis.budget_wording import sentences_at_budget
from analysis.columns import column, scores, states
from analysis.comparison import comparisons
from analysis.data_sets import sentence_over_data_sets
from analysis.findings import Findings
from analysis.importance import LEAST_TRIALS, too_few
from analysis.paper.tables import why_not_on_paper_data
from analysis.score_format import ScoreFormat
from analysis.verdict import verdict
from analysis.wording import sentences
from dice_ray.errors import counted


def summary(findings: Findings) -> Iterator[str]:
    """The sentences, the most important first."""
    compared = comparisons(findings)
    yield from sentence_over_data_sets(compared)
    for comparison in compared:
        prefix = f"On {comparison.place}: " if len(compared) > 1 else ""
        yield from (f"{prefix}{sentence}" for sentence in sentences(verdict(comparison)))
        collapsed = [f"{arm.name} ({arm.collapsed} of {arm.score.num})" for arm in comparison.arms if arm.collapsed]
        if collapsed:
            yield f"{prefix}Runs that predict one class only: {', '.join(collapsed)}."
    studied = at_budget(findings)
    for study in studied:
        prefix = f"On {study.place}: " if len(studied) > 1 else ""
        yield from (f"{prefix}{sentence}" for sentence in sentences_at_budget(study))
    parents = findings.frame[findings.frame["kind"].isin(["run", "sweep", "study"])]
    for warnings in dict.fromkeys(column(parents, "tags.few_items").dropna()):
        yield from str(warnings).splitlines()
    if why_not := why_not_on_paper_data(findings):
        yield why_not
    if best := best_trial(findings):
        trials = findings.frame[findings.frame["kind"] == "trial"]
        # As in the table of trials.
        score_format = ScoreFormat.of(best.metric, [best.score, *scores(trials, best.metric)])
        score = f"{score_format.heading(best.metric)} {score_format.show(best.score)}"
        yield f"The best of {counted(len(trials), 'trial')} is {best.id}, with {best.loss}: {score}."
        num_tied = 0 if best.num_reruns else int((scores(trials, best.metric) == best.score).sum())
        if num_tied > 1:
            yield f"{num_tied} trials have this very score."
        criterion = (
            f"the mean over {best.num_reruns} other seeds on dev" if best.num_reruns else "this same score on dev"
        )
        yield f"The search selected it by {criterion}; a study over seeds measures it on the test split."
    if few := too_few(findings.frame):
        counts_by_loss = ", ".join(f"{loss} {num}" for loss, num in few.items())
        yield (
            f"Too few trials to show the importance of hyperparameters: a loss needs {LEAST_TRIALS} scored trials, and "
            f"the sweep has {counts_by_loss}."
        )
    state = states(findings.frame[findings.frame["kind"].isin(["trial", "cell"])])
    counts = [f"{(state == name).sum()} {name}" for name in ("failed", "unfinished") if (state == name).any()]
    if counts:
        yield f"Of {counted(len(state), 'run')}, {' and '.join(counts)}; they are listed below."
    elif len(state):
        yield "The run finished." if len(state) == 1 else f"All {len(state)} runs finished."
