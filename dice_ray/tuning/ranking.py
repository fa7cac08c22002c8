"""Which trial of a search is best: THE definition, for a ledger and for the frame of MLflow's runs alike.

A trial's own score is optimistic, since the trial was chosen by it. So trials that were run again with other seeds are
ranked by the mean of their reruns alone, and stand before those that were not; a rerun that failed is no seed to leave
out, so a trial with more scored reruns stands before one with fewer. Of equal trials the first one is best. A trial
that failed has no rank. Whatever reads a "best" trial (retained checkpoints, `runs`, `report`, `export-preset`,
`--tuned-from`) reads it here.
"""

from __future__ import annotations

import math
import shutil
import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dice_ray.config.load import as_written, values_layer
from dice_ray.errors import InputError, RunError, UnknownNameError
from dice_ray.run import store
from dice_ray.run.build import objective
from dice_ray.run.folder import ENCODER
from dice_ray.tracking import schema
from dice_ray.training.checkpoint import BEST, RESUME_FILES
from dice_ray.tuning import plan_file
from dice_ray.tuning.ledger import History, Ledger, TrialSpec, ledger_in
from dice_ray.tuning.plan import AUTOMATIC, SweepPlan
from dice_ray.tuning.study import StudyPlan

if TYPE_CHECKING:
    import pandas as pd

FIRST_SEED = 1001
"""Seeds of reruns start here, beyond those of studies: a study must not compare on seeds that a search selected by."""


@dataclass(frozen=True)
class RankedTrial:
    """A trial with a score.

    Attributes:
        score: Its own, by which the search selected it.
        rerun_scores: Of its reruns with other seeds.
    """

    id: str
    score: float
    rerun_scores: tuple[float, ...] = ()

    @property
    def mean(self) -> float:
        """The value that it is ranked by: the mean of its reruns, or its own score where it has none."""
        return statistics.fmean(self.rerun_scores) if self.rerun_scores else self.score

    @property
    def rank(self) -> tuple[int, float, float]:
        """What trials are sorted by, the best one lowest."""
        return -len(self.rerun_scores), -self.mean, -self.score


def ranked(scores: Iterable[tuple[str, float | None, str | None]]) -> list[RankedTrial]:
    """Trials, the best first.

    Args:
        scores: Id and score of each run in the order of their start, and the id of the trial that it is a rerun of, if
            it is one. A score is None where the run failed or was not evaluated.
    """
    scored = [(id_, score, rerun_of) for id_, score, rerun_of in scores if score is not None]
    reruns: dict[str, list[float]] = {}
    for _, score, rerun_of in scored:
        if rerun_of is not None:
            reruns.setdefault(rerun_of, []).append(score)
    trials = [
        RankedTrial(id_, score, tuple(reruns.get(id_, ()))) for id_, score, rerun_of in scored if rerun_of is None
    ]
    return sorted(trials, key=lambda trial: trial.rank)


def ranked_in(history: History) -> list[RankedTrial]:
    """The trials of a sweep, or the cells of a study, in a ledger, the best on dev first."""
    ended = [(spec, history.outcomes[id_]) for id_, spec in history.specs.items() if id_ in history.outcomes]
    return ranked((spec.id, outcome.score, spec.rerun_of) for spec, outcome in ended)


def ranked_in_frame(frame: pd.DataFrame) -> list[RankedTrial]:
    """The trials of a sweep in a frame of MLflow's runs, the best first; empty without a sweep or its metric."""
    parents, runs = frame[frame["kind"] == "sweep"], frame[frame["kind"].isin(["trial", "rerun"])]
    if parents.empty or runs.empty:
        return []
    metric = parents.iloc[0].get(schema.tag_column(schema.METRIC))
    if not isinstance(metric, str):  # the tag was deleted in MLflow
        return []
    columns = [schema.metric_column(name) for name in (schema.best_metric(metric), metric)]
    return ranked(_score_in_row(row, columns) for row in runs.to_dict("records"))


def _score_in_row(row: Mapping[Any, Any], columns: Sequence[str]) -> tuple[str, float | None, str | None]:
    scores = [row[name] for name in columns if name in row and not math.isnan(row[name])]
    score = scores[0] if scores and row["state"] in ("done", "pruned") else None
    rerun_of = row.get(schema.tag_column(schema.RERUN_OF))
    return str(row["id"]), score, rerun_of if isinstance(rerun_of, str) else None


def best_in(history: History) -> str | None:
    """The id of the best trial or cell on dev; None where none has a score."""
    return next((trial.id for trial in ranked_in(history)), None)


def rerun_seeds(plan: SweepPlan) -> range:
    """The seeds of the reruns of a sweep's best configurations."""
    return range(FIRST_SEED + plan.seed, FIRST_SEED + plan.seed + plan.seeds)


def best_to_rerun(plan: SweepPlan, history: History) -> list[TrialSpec]:
    """The best trials of a search so far, of different configurations, by their own scores."""
    best: list[TrialSpec] = []
    for trial in ranked_in(history.searched()):
        spec = history.specs[trial.id]
        if len(best) < plan.top and spec.params not in [other.params for other in best]:
            best.append(spec)
    return best


def reruns(plan: SweepPlan, history: History) -> list[TrialSpec]:
    """The reruns of the best trials of a search, all of one seed before the next seed."""
    return [
        TrialSpec(id=f"{best.id}-{seed}", params=best.params, seed=seed, rerun_of=best.id)
        for seed in rerun_seeds(plan)
        for best in best_to_rerun(plan, history)
    ]


def placeholder_ids(plan: SweepPlan) -> list[str]:
    """Ids that stand for the reruns until the search has ended: only then their trials are known."""
    return [f"best {rank} seed {seed}" for seed in rerun_seeds(plan) for rank in range(min(plan.top, plan.trials))]


def retained(plan: SweepPlan, history: History) -> set[str]:
    """The trials of a sweep whose checkpoints are kept: the best one, and those that may be run again.

    More seeds may be asked for whenever the reruns have ended, and make another of these trials the best. A search for
    several objectives has no best trial and keeps all.
    """
    if plan.objectives:
        return set(history.outcomes)
    candidates = [spec.id for spec in best_to_rerun(plan, history)]
    return {id_ for id_ in (best_in(history), *candidates) if id_ is not None}


def disk_needed(plan: SweepPlan | StudyPlan, num_runs: int, num_at_once: int, weights: int) -> int:
    """Bytes of the checkpoints of a sweep or study: of the runs that keep theirs, and of those that run.

    Args:
        plan: Of the sweep or study.
        num_runs: Number of trials or cells that are to run.
        num_at_once: Number of those that run at once.
        weights: Bytes of a model's weights.
    """
    num_kept = num_runs
    if isinstance(plan, SweepPlan) and not plan.objectives:
        num_kept = 1 + min(plan.top, plan.trials)  # the best trial, and those that may be run again
    # Each running trial writes its best weights twice, and twice the last ones with AdamW's two moments.
    return (num_kept + num_at_once * 8) * weights


def clean_up(plan: SweepPlan | StudyPlan, ledger: Ledger, trials: Path, ids: Collection[str]) -> set[str]:
    """Delete the files of these ended trials that no command reads any more.

    A study keeps the best checkpoint of every cell, and all of a failed one, which is tried again in its folder.

    Returns:
        The trials of a sweep whose checkpoints were kept, and may go when the next trial ends; none of a study, and of
        a search for several objectives, which keeps all.
    """
    if isinstance(plan, StudyPlan):
        for id_ in ids:
            if ledger.outcomes[id_].state != "failed":
                _delete(trials / id_, RESUME_FILES)
        return set()
    # Among the kept ones and the one that ended, as among all: ranking thousands would take longer than ending a trial.
    kept = retained(plan, ledger.of(ids))
    for id_ in ids:
        _delete(trials / id_, RESUME_FILES if id_ in kept else (*RESUME_FILES, BEST, ENCODER))
    return set() if plan.objectives else kept


def _delete(folder: Path, names: Collection[str]) -> None:
    if folder.is_symlink():  # what it points to may be no folder of a trial
        return
    store.delete(folder, names)
    for path in (folder / name for name in names):
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def preset(folder: Path, trial: str | None = None) -> str:
    """The configuration of a sweep's best trial, or of the given one, as a commented preset.

    Raises:
        RunError: The folder holds no sweep, or none of its trials has a score.
        UnknownNameError: There is no such trial, or it has no score.
        InputError: The sweep has several objectives, and no trial was named.
    """
    plan, ledger = plan_file.read(folder), ledger_in(folder)
    if not isinstance(plan, SweepPlan):
        raise RunError(f"{folder} must hold a sweep: it holds a study, and its report says which arm is best")
    trials = {each.id: each for each in ranked_in(ledger)}
    if not trials:
        raise RunError(f"{folder} must hold a trial with a score, and holds none")
    if trial is None and plan.objectives:
        raise InputError(f"{plan.name} has several objectives: name a trial of its Pareto front, as {plan.name}/0001")
    if trial is not None and trial not in trials:
        raise UnknownNameError(f"trial of {plan.name} with a score", trial, trials)
    best = trials[trial] if trial is not None else next(iter(trials.values()))
    spec = ledger.specs[best.id]
    layer = values_layer("trial", spec.params | {"training.seed": spec.seed})
    values = as_written([*(below for below in plan.layers if below.origin != AUTOMATIC), layer])
    return "".join(f"# {line}\n" for line in _header(plan, best, spec.seed)) + values


def _header(plan: SweepPlan, best: RankedTrial, seed: int) -> list[str]:
    num_seeds = len(best.rerun_scores)
    by = f"the mean over {num_seeds} other seeds: {best.mean:.4f}" if num_seeds else (
        "this score, which is optimistic since the trial was selected by it"
    )  # fmt: skip
    lines = [
        f"Trial {best.id} of the sweep {plan.name}: run it by `dice-ray train`.",
        f"From {plan.origins}, searched in {plan.space} by {plan.sampler}, {plan.trials} trials.",
        f"{objective(plan.base())} {best.score:.4f} with seed {seed}.",
        f"Ranked by {by}.",
    ]
    return [*lines, f"Data digest: {plan.digest}."] if plan.digest else lines
