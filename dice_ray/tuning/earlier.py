"""What a plan takes from earlier sweeps: the trials that a search begins with, and the settings of a study.

Trials of another sweep count only where they are of the same task and data: else their scores have no meaning here.

A study has two designs. Shared settings (`with_shared_settings`): the best trial of one sweep gives all arms its
settings apart from those of the loss, so that the arms differ in their losses alone; sweeps at these settings may give
a loss its own parameters. Tuned each (`with_tuned_arms` alone): each arm has all settings of the best trial with its
loss. That compares what the searches found, each of which is a single draw, not the losses.

Each has a control, an arm that must not differ from the baseline: of tuned arms, the baseline's loss with the other
settings found for another arm; of shared settings, cross-entropy with equal class weights.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dice_ray.config.load import Layer, values_layer
from dice_ray.config.schema import RunConfig
from dice_ray.errors import ConfigError, ConflictError, InputError, Problem, RefusedError
from dice_ray.settings import Flat, differing_paths, flat
from dice_ray.tuning.ledger import History, TrialSpec, ledger_in
from dice_ray.tuning.plan import AUTOMATIC, Plan
from dice_ray.tuning.plan_file import read_sweep
from dice_ray.tuning.ranking import RankedTrial, ranked_in
from dice_ray.tuning.space import Space, check_suggested, paths
from dice_ray.tuning.study import StudyPlan
from dice_ray.tuning.sweep import SweepPlan

_SECTIONS_OF_LOSS: Final = ("loss", "mining")
"""The sections that belong to a loss: mining selects the items that it is computed on."""
_EQUAL_WEIGHTS: Final[Flat] = {"loss": "weighted_cross_entropy", "loss.weighted_cross_entropy.weighting.lg.k": 1000}
"""Weighted cross-entropy with nearly equal weights: the same loss, computed by another class.

The weights of two classes differ by 1.4 % where one is 100 times as frequent.
"""


@dataclass(frozen=True)
class _EarlierSweep:
    """The plan and the history of another sweep."""

    plan: SweepPlan
    history: History

    def trials(self) -> list[TrialSpec]:
        """The trials that have ended, without reruns."""
        return [spec for spec, _ in self.history.searched().ended]

    def loss(self, trial: TrialSpec) -> str:
        """The loss of a trial."""
        return self.plan.config(trial).loss.name


def _sweep_in(folder: Path, config: RunConfig, digest: str) -> _EarlierSweep:
    """The sweep in a folder, which must be of the task of this configuration and of the data of this digest."""
    plan = read_sweep(folder, "to start from")
    # The digest compares the files, in whatever folder they are.
    differing = [path for path in differing_paths(config, plan.base()) if path != "data.source.files.folder"]
    if other := [path for path in differing if path.partition(".")[0] in ("task", "data")]:
        raise RefusedError(
            f"{folder} must hold a sweep of the same task and data, or its scores cannot be compared; these settings "
            f"differ: {', '.join(other)}"
        )
    if plan.digest != digest:
        raise RefusedError(
            f"{folder} must hold a sweep of the same data, or its scores cannot be compared: they were changed (digest "
            f"{plan.digest} then, {digest} now)"
        )
    return _EarlierSweep(plan, ledger_in(folder))


def check(plan: Plan, folder: Path, address: str | None) -> list[str]:
    """Check that a plan can run in a folder, and start from the sweep that it names; returns notes for the user."""
    if isinstance(plan, SweepPlan) and plan.warm_start is not None:
        if (source := plan.sweep_to_copy(folder)) is not None:
            _check_warm_start(plan, source)
        if not (ledger := ledger_in(folder)).specs and plan.is_exhausted(ledger, address):
            raise InputError(f"{plan.name} has tried all that its space holds, with the trials of {plan.warm_start}")
    return plan.check(folder)


def _check_warm_start(plan: SweepPlan, folder: Path) -> None:
    """The folder must hold a sweep of the plan's task, data and encoder, with trials that its space could suggest."""
    base, space = plan.base(), Space(plan.space)
    sweep = _sweep_in(folder, base, base.splits().digest)
    if not (trials := sweep.trials()):
        raise RefusedError(f"{folder} must hold trials that have ended to start from, and has none yet")
    encoder, is_searched = sweep.plan.base().model.encoder, all("model.encoder" in trial.params for trial in trials)
    if encoder != base.model.encoder and not is_searched:
        raise RefusedError(
            f"{folder} must hold a sweep of the encoder {base.model.encoder!r}, or its scores cannot be compared, got "
            f"{encoder!r}"
        )
    check_suggested(trials, space, folder)


def with_shared_settings(plan: StudyPlan, folder: Path) -> StudyPlan:
    """The plan with, below all arms, the settings of the best trial of a sweep apart from those of its loss.

    What the study itself writes (`--set`, a variant, an arm) is above them. The plan gets a control too, where the
    baseline is plain cross-entropy.

    Raises:
        RunError: The folder does not hold a sweep of the same task, data and encoder, its seed is one of the study's,
            no trial has a score, or it searched settings of the loss alone.
    """
    sweep = _sweep_for(plan, folder)
    name, best = sweep.plan.name, next(iter(ranked_in(sweep.history)), None)
    if best is None:
        raise RefusedError(f"the sweep {name} must have a trial with a score to share its settings, and it has none")
    trial = sweep.history.specs[best.id]
    settings = _apart_from_loss(trial.params)
    if not settings:
        raise RefusedError(
            f"the sweep {name} must have searched settings that all losses can share, and it searched "
            f"{', '.join(sorted(trial.params))} only: search --space optimizer_tuning, or a space of joint_tuning"
        )
    layer = values_layer(f"shared settings of {name}", settings)

    def with_layer(layers: Sequence[Layer]) -> tuple[Layer, ...]:
        return (layers[0], layer, *layers[1:])

    made = plan.model_copy(
        update={
            "layers": with_layer(plan.layers),
            "variants": {
                variant: content.model_copy(update={"layers": with_layer(content.layers)})
                for variant, content in plan.variants.items()
            },
            "shared": f"{name} {best.id}, {sweep.loss(trial)}, best of {len(sweep.trials())}",
            "shared_settings": settings,
        }
    )
    return _with_equal_weights(made)


def with_tuned_arms(plan: StudyPlan, folders: Sequence[Path]) -> StudyPlan:
    """The plan with, below each arm, the parameters of the best trial of its loss in these sweeps, and with a control.

    With shared settings these are the parameters of the loss alone, and an arm whose loss no sweep has searched keeps
    its own.

    Raises:
        RunError: A folder does not hold a sweep of the same task, data and encoder, or its seed is one of the study's;
            or a sweep has other training settings than the shared ones.
        ConfigError: No sweep has a trial with a score for the loss of an arm, an arm cannot run, or what was found for
            one would override a setting over the preset.
    """
    plan.grid()  # raises where an arm cannot run, or the baseline does not fit the task
    sweeps = [_sweep_for(plan, folder) for folder in folders]
    best = _best_by_loss(sweeps)
    losses = {arm: config.loss.name for arm, config in _configs(plan).items() if arm not in plan.controls}
    if not plan.shared and (lacking := {arm: loss for arm, loss in losses.items() if loss not in best}):
        must = "must be of a loss that a sweep has a trial of"
        raise ConfigError([Problem(f"arms.{arm}", must, loss, known=tuple(best)) for arm, loss in lacking.items()])
    num_trials = Counter(sweep.loss(trial) for sweep in sweeps for trial in sweep.trials())
    settings, origins = {}, {}
    for arm, loss in losses.items():
        if loss not in best:
            continue
        sweep, ranked = best[loss]
        trial = sweep.history.specs[ranked.id]
        params = trial.params
        if plan.shared:
            _check_shared(plan, sweep, trial)
            params = {path: value for path, value in params.items() if _is_of_loss(path)}
            if not params.keys() - {"loss"}:
                continue  # such as cross-entropy, which has no parameters
        settings[arm] = params
        origins[arm] = f"{sweep.plan.name} {trial.id}, best of {num_trials[loss]}"
    found = {path for params in settings.values() for path in params}
    above = [layer for layer in plan.layers[1:] if layer.origin != AUTOMATIC]
    must = "must not be set: an arm has what its sweep found; leave it out"
    if problems := [
        Problem(path, must, origin=each.origin) for each in above for path in paths(each.values) if path in found
    ]:
        raise ConfigError(problems)
    made = plan.model_copy(update={"tuned": origins, "tuned_settings": settings})
    return made if plan.shared else _with_control(made)


def _sweep_for(plan: StudyPlan, folder: Path) -> _EarlierSweep:
    """The sweep in a folder, of the study's task, data and encoder, with another seed."""
    base = plan.base()
    sweep = _sweep_in(folder, base, plan.digest)
    name, encoder = sweep.plan.name, sweep.plan.base().model.encoder
    if encoder != base.model.encoder:
        raise RefusedError(
            f"the sweep {name} must be of the study's encoder {base.model.encoder!r} to tune its arms, got {encoder!r}"
        )
    # The search chose the settings by their score with this seed, so a comparison on it would favour them.
    if sweep.plan.seed in plan.seeds:
        raise RefusedError(
            f"a study must compare on other seeds than its arms were tuned on, got seed {sweep.plan.seed} of {name}"
        )
    return sweep


def _check_shared(plan: StudyPlan, sweep: _EarlierSweep, trial: TrialSpec) -> None:
    """The parameters of a loss must have been searched with the shared training settings."""
    values, name = flat(sweep.plan.config(trial)), plan.shared.partition(" ")[0]
    for path, value in plan.shared_settings.items():
        if path.startswith("training.") and values.get(path) != value:
            raise RefusedError(
                f"the sweep {sweep.plan.name} must search the parameters of a loss at the shared settings of {name}, "
                f"and its best trial has {path} {values.get(path)!r} instead of {value!r}: run it with --space "
                f"loss_tuning:LOSS on the preset that `dice-ray export-preset {name} shared.yaml` writes"
            )


def _with_equal_weights(plan: StudyPlan) -> StudyPlan:
    """The plan with another arm, cross-entropy with equal class weights, if the baseline is plain cross-entropy."""
    control = f"control_{plan.baseline}"
    if _config(plan, plan.baseline).loss.name != "cross_entropy":
        return plan
    _check_name(plan, control)
    made = plan.model_copy(
        update={
            "arms": plan.arms | {control: _apart_from_loss(plan.arms[plan.baseline]) | _EQUAL_WEIGHTS},
            "controls": {control: plan.baseline},
        }
    )
    try:
        config = _config(made, control)
    except ConflictError:  # the task takes no weighted cross-entropy
        return plan
    return plan if config in _configs(plan).values() else made


def _with_control(plan: StudyPlan) -> StudyPlan:
    """The plan with another arm: the baseline, with the settings apart from the loss's that were found for another arm.

    It shows how large differences between arms can be that come only from what their searches drew. Where the searches
    found the same settings apart from the loss's, or the baseline writes all of them itself, there is nothing to show.
    """
    own_loss = {path: value for path, value in plan.tuned_settings[plan.baseline].items() if _is_of_loss(path)}
    for arm, settings in plan.tuned_settings.items():
        control = f"control_{arm}"
        _check_name(plan, control)
        with_control = plan.model_copy(
            update={
                "arms": plan.arms | {control: plan.arms[plan.baseline]},
                "tuned": plan.tuned | {control: plan.tuned[arm]},
                "tuned_settings": plan.tuned_settings | {control: own_loss | _apart_from_loss(settings)},
                "controls": {control: arm},
            }
        )
        if _config(with_control, control) != _config(plan, plan.baseline):
            return with_control
    return plan


def _check_name(plan: StudyPlan, control: str) -> None:
    if control in plan.arms:
        raise ConfigError([Problem(f"arms.{control}", "must have another name, which is that of a control", control)])


def _apart_from_loss(params: Mapping[str, Any]) -> dict[str, Any]:
    return {path: value for path, value in params.items() if not _is_of_loss(path)}


def _is_of_loss(path: str) -> bool:
    return path.partition(".")[0] in _SECTIONS_OF_LOSS


def _config(plan: StudyPlan, arm: str) -> RunConfig:
    return plan.config(TrialSpec(id="", params=plan.arms[arm], seed=plan.seeds[0], arm=arm))


def _configs(plan: StudyPlan) -> dict[str, RunConfig]:
    """The configuration of each arm that the task can run; `StudyPlan.grid` says why the others are left out."""
    configs = {}
    for arm in plan.arms:
        with suppress(ConflictError):
            configs[arm] = _config(plan, arm)
    return configs


def _best_by_loss(sweeps: Sequence[_EarlierSweep]) -> dict[str, tuple[_EarlierSweep, RankedTrial]]:
    """The best trial of each loss over these sweeps, as `ranking` ranks the trials of one."""
    best: dict[str, tuple[_EarlierSweep, RankedTrial]] = {}
    for sweep in sweeps:
        for trial in ranked_in(sweep.history):
            loss = sweep.loss(sweep.history.specs[trial.id])
            if loss not in best or trial.rank < best[loss][1].rank:
                best[loss] = sweep, trial
    return best
