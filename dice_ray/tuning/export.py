"""The best configuration of a sweep as a preset: what was written, and where it comes from."""

from __future__ import annotations

from pathlib import Path

from dice_ray import launch
from dice_ray.config.load import as_written, values_layer
from dice_ray.errors import InputError, RunError, UnknownNameError
from dice_ray.tuning import plan_file
from dice_ray.tuning.ledger import Ledger
from dice_ray.tuning.plan import THIS_MACHINE, SweepPlan
from dice_ray.tuning.reruns import Ranked, ranking


def preset(folder: Path, trial: str | None = None) -> str:
    """The preset of a sweep's best configuration, or of that of a trial.

    Raises:
        RunError: The folder holds no sweep, or none of its trials has a score.
        UnknownNameError: There is no such trial, or it has no score.
        InputError: The sweep has several objectives, and no trial was named.
    """
    plan = plan_file.read(folder)
    if not isinstance(plan, SweepPlan):
        raise RunError(f"{folder} must hold a sweep: it holds a study, and its report says which arm is best")
    found = {one.trial.id: one for one in ranking(Ledger(folder / "ledger.jsonl"))}
    if not found:
        raise RunError(f"{folder} must hold a trial with a score, and holds none")
    if trial is None and plan.objectives:
        raise InputError(f"{plan.name} has several objectives: name a trial of its Pareto front, as {plan.name}/0001")
    if trial is not None and trial not in found:
        raise UnknownNameError(f"trial of {plan.name} with a score", trial, found)
    one = found[trial] if trial is not None else next(iter(found.values()))
    own = values_layer("trial", one.trial.params | {"training.seed": one.trial.seed})
    written = as_written([*(layer for layer in plan.layers if layer.origin != THIS_MACHINE), own])
    return "".join(f"# {line}\n" for line in _header(plan, one)) + written


def _header(plan: SweepPlan, one: Ranked) -> list[str]:
    origins = [layer.origin for layer in plan.layers if layer.values and layer.origin != THIS_MACHINE]
    metric, seeds = launch.objective(plan.base()), len(one.others)
    by = f"the mean over {seeds} other seeds" if seeds else "this score, chosen as the best of all and so optimistic"
    lines = [
        f"Trial {one.trial.id} of the sweep {plan.name}: to be run by `dice-ray train`.",
        f"From {' and '.join(origins)}, searched in {plan.space} by {plan.sampler}, {plan.trials} trials.",
        f"{metric} {one.score:.4f} with seed {one.trial.seed}.",
        f"Ranked by {by}{f': {one.mean:.4f}' if seeds else ''}.",
    ]
    return [*lines, f"Data digest: {plan.digest}."] if plan.digest else lines
