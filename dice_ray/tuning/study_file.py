"""The file of a study: its arms, and the variants that they are run on (data sets, encoders, altered training sets)."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

from dice_ray.config.load import Layer, assignment, values_layer
from dice_ray.config.schema import RunConfig
from dice_ray.errors import DataError, InputError, UnknownNameError, nearest
from dice_ray.run.names import names_of, stored_code, told_apart
from dice_ray.settings import Flat, without_numpy
from dice_ray.tasks.inspection import rarest_and_unseen
from dice_ray.tuning.cells import VariantsAre
from dice_ray.user_code import address_of, load, module_at

_NAMES = ("ARMS", "BASELINE", "VARIANTS", "SETTINGS", "SPACE", "SPACES", "DATA")
_LEAST_ITEMS = 2
"""Items of each class in dev and test without which a study says nothing."""
_NUM_SETTINGS, _BUDGET = 30, 4
"""How many settings are drawn from a space, and of how many the best counts, if it is not said."""


@dataclass(frozen=True)
class StudyFile:
    """The content of a study's file.

    Attributes:
        arms: The settings of each arm, by path.
        baseline: The arm that the others are compared to.
        variants: The settings of each variant, below the arms, by path; empty where there is only one.
        variants_are: `settings` if the file has SETTINGS or a SPACE, draws of one search, in place of VARIANTS.
        data: The presets that the study is run on where none is given.
        space: The search space that settings are drawn from; None without one.
        spaces: The search spaces of parameters that a single arm has, by arm.
        addresses: Those of the spaces by arm, and that of the space of all arms by an empty name.
        budget: As in `StudyPlan`.
        own: What was drawn from the spaces of single arms, by variant and arm.
        seeds: The seed of each variant, if each is run with one; empty if all are run with all seeds.
    """

    arms: dict[str, Flat]
    baseline: str
    variants: dict[str, Flat]
    variants_are: VariantsAre
    data: tuple[str, ...]
    space: Callable[[Any], None] | None = None
    spaces: dict[str, Callable[[Any], None]] = field(default_factory=dict)
    addresses: dict[str, str] = field(default_factory=dict)
    budget: int | None = None
    own: dict[str, dict[str, Flat]] = field(default_factory=dict)
    seeds: dict[str, int] = field(default_factory=dict)


def read_study(
    study: str, address: str, is_row: Callable[[str], bool], space_address: Callable[[str], str] = str
) -> StudyFile:
    """A study in a Python module.

    Args:
        study: Its name, for messages.
        address: Of the module, or a Python file.
        is_row: Whether a report has a row of this name, which no arm can have.
        space_address: The address of a space that is given by a name, as `loss_tuning:focal`.

    Raises:
        UnknownNameError: BASELINE is not one of its arms.
        InputError: The file does not define a study.
    """
    module = module_at(address)
    others = [name for name in _NAMES if not hasattr(module, name)]
    for name in filter(str.isupper, vars(module)):
        if close := nearest(name, others) if name not in _NAMES else None:
            raise InputError(f"{study} defines {name}, which no study has; did you mean {close}? Rename it if not")
    if missing := [name for name in ("ARMS", "BASELINE") if not hasattr(module, name)]:
        raise InputError(f"a study must define ARMS and BASELINE, and {study} lacks {' and '.join(missing)}")
    kinds = [name for name in ("VARIANTS", "SETTINGS", "SPACE") if hasattr(module, name)]
    if len(kinds) > 1:
        raise InputError(
            f"a study must define one of VARIANTS, SETTINGS and SPACE, and {study} defines {' and '.join(kinds)}: a "
            "study of settings runs on several data sets by --data"
        )
    variants_name = "SETTINGS" if "SETTINGS" in kinds else "VARIANTS"
    variants = getattr(module, variants_name, {})
    for name, value in (("ARMS", module.ARMS), (variants_name, variants)):
        mappings = [value, *value.values()] if isinstance(value, dict) else [value]
        if not all(isinstance(each, dict) and all(isinstance(key, str) for key in each) for each in mappings):
            raise InputError(f"{name} of {study} must map names to settings by path, got {value!r:.80}")
    for name in module.ARMS:
        if not name.strip() or is_row(name):
            raise InputError(f"an arm of {study} must have a name, and not that of a row of a report, got {name!r}")
    if not isinstance(module.BASELINE, str):
        raise InputError(f"BASELINE of {study} must be the name of an arm, got {module.BASELINE!r:.80}")
    if module.BASELINE not in module.ARMS:
        raise UnknownNameError("arm for BASELINE", module.BASELINE, module.ARMS)
    data = getattr(module, "DATA", ("synthetic_pairs",))
    is_list = isinstance(data, Collection) and not isinstance(data, str)
    if not is_list or not data or not all(isinstance(name, str) for name in data):
        raise InputError(f"DATA of {study} must be a list of names of presets, got {data!r:.80}")
    space, spaces = getattr(module, "SPACE", None), getattr(module, "SPACES", {})
    if isinstance(space, str):
        space = load(space_address(space))
    if isinstance(spaces, dict):
        spaces = {arm: load(space_address(each)) if isinstance(each, str) else each for arm, each in spaces.items()}
    if spaces and "SPACE" not in kinds:
        raise InputError(
            f"a study with SPACES, of single arms, must define the SPACE of all arms, and {study} does not"
        )
    if "SPACE" in kinds and not callable(space):
        raise InputError(f"SPACE of {study} must be a function of a trial, as search spaces are, got {space!r:.80}")
    if not isinstance(spaces, dict) or not all(map(callable, spaces.values())):
        raise InputError(f"SPACES of {study} must map names of arms to functions of a trial, got {spaces!r:.80}")
    if unknown := [name for name in spaces if name not in module.ARMS]:
        raise UnknownNameError("arm for SPACES", unknown[0], module.ARMS)
    variants_are: VariantsAre = "settings" if kinds in (["SETTINGS"], ["SPACE"]) else "data"
    return StudyFile(
        without_numpy(module.ARMS),
        module.BASELINE,
        without_numpy(variants),
        variants_are,
        tuple(data),
        space,
        spaces,
        {arm: _address(each) for arm, each in [*spaces.items(), *([("", space)] if space else [])]},
    )


def _address(space: Callable[[Any], None]) -> str:
    """The address of a space as a record: its name alone where no other process could load it."""
    try:
        return address_of(space)
    except InputError:
        return getattr(space, "__name__", repr(space))


def with_draws(
    study: str,
    file: StudyFile,
    draw: Callable[..., dict[str, Flat]],
    num: int | None,
    budget: int | None,
    seeds: int | None,
    *,
    crossed: bool,
) -> StudyFile:
    """A study with a number of settings drawn from its space as variants; any other study as it is.

    `draw` is `search_spaces.draws.draws`. If crossed, each setting is run with each seed, else setting i with seed i.
    An InputError where the study has no space, or the numbers do not fit.
    """
    if file.space is None:
        for option, value in (("--settings", num), ("--crossed", crossed), ("--budget", budget)):
            if value:
                raise InputError(f"{option} is for a study with a SPACE, which {study} does not define: leave it out")
        return file
    if seeds is not None and not crossed:
        raise InputError(
            f"--seeds is for {study} with --crossed, got {seeds}: without it, setting i is run with seed i, and more "
            "--settings make the study larger"
        )
    num = _NUM_SETTINGS if num is None else num
    if budget is None and not crossed:
        budget = _BUDGET
    if num <= (budget or 0) or (budget is not None and budget < 1):
        raise InputError(f"--settings must be more than --budget, and both at least 1, got {num} and {budget}")
    drawn = draw(file.space, num)
    # Another seed: with the same one, the first parameter of an arm would be as large as the first shared one.
    by_arm = {arm: draw(space, num, seed=1) for arm, space in file.spaces.items()}
    for arm, own in by_arm.items():
        if both := {path for name in drawn for path in own[name] if path in drawn[name]}:
            raise InputError(f"the space of arm {arm} of {study} must leave {', '.join(sorted(both))} to SPACE")
    return replace(
        file,
        variants=drawn,
        budget=budget,
        own={name: {arm: own[name] for arm, own in by_arm.items()} for name in drawn},
        seeds={} if crossed else {name: number for number, name in enumerate(drawn, start=1)},
    )


def with_arms(study: str, file: StudyFile, added: Mapping[str, Flat]) -> str:
    """The file of a study with further arms: it is written, so that a command can run it again."""
    if taken := [name for name in added if name in file.arms]:
        raise InputError(f"a loss must have another name than the arms of {study}, got {taken[0]!r}")
    name = "SETTINGS" if file.variants_are == "settings" else "VARIANTS"
    variants = f"{name} = {file.variants!r}\n"
    if file.space is not None:
        spaces = ", ".join(f"{arm!r}: load({address_of(space)!r})" for arm, space in file.spaces.items())
        variants = (
            f"from dice_ray.user_code import load\n\nSPACE = load({address_of(file.space)!r})\nSPACES = {{{spaces}}}\n"
        )
    content = (
        f'"""The study {Path(study).name} with losses that were given in Python."""\n\n'
        f"{variants}ARMS = {file.arms | dict(added)!r}\nBASELINE = {file.baseline!r}\nDATA = {file.data!r}\n"
    )
    return str(stored_code(Path(study).stem, content))


def layers_by_variant(
    data: Sequence[str | Path],
    layers_of: Callable[[str | Path], Sequence[Layer]],
    encoders: Sequence[str],
    variants: Mapping[str, Flat],
) -> dict[str | None, tuple[str, list[Layer], str]]:
    """The name of the data, the layers, and the name in the study's file of each variant: every data set with every
    encoder with every variant of that file.

    The name of a variant has a part for each of the three of which there are several. If there is one of each, the only
    variant has the key None.
    """
    by_name: dict[str | None, tuple[str, list[Layer], str]] = {}
    data_names = names_of(data)
    encoder_names = told_apart({encoder: Path(encoder).parts or (encoder,) for encoder in encoders})
    each_encoder: Sequence[str | None] = encoders or [None]
    each_variant: Sequence[str | None] = [*variants] or [None]
    for preset, encoder, variant in product(data, each_encoder, each_variant):
        layers = [*layers_of(preset)]
        if encoder is not None:
            layers.append(values_layer("--encoder", {"model.encoder": encoder}))
        if variant is not None:
            layers.append(values_layer(f"variant {variant}", variants[variant]))
        parts = [data_names[preset]] if len(data) > 1 else []
        parts += [encoder_names[encoder]] if encoder is not None and len(encoders) > 1 else []
        name = ", ".join([*parts, *([variant] if variant is not None else [])]) or None
        if name in by_name:
            raise InputError(f"the variants of a study must have different names, and two are {name!r}")
        by_name[name] = data_names[preset], layers, variant or ""
    return by_name


def command_of(study: str, options: Mapping[str, Any]) -> str:
    """The command that runs a study with these options: flags that are True, and lists with the option before each.

    An option without a value is left out; settings may be given by path.

    >>> command_of("mining", {"--data": ["mrpc"], "--set": {"training.epochs": 2}, "--care": None, "--again": True})
    'dice-ray ablate mining --data mrpc --set training.epochs=2 --again'
    """
    words = ["dice-ray", "ablate", study]
    for option, value in options.items():
        if isinstance(value, Mapping):
            value = [assignment(path, each) for path, each in value.items()]
        elif isinstance(value, str) or not isinstance(value, Iterable):
            value = [value] if value else []
        for each in value:
            words += [option] if each is True else [option, f"{each:g}" if isinstance(each, float) else str(each)]
    return shlex.join(words)


def check_test(config: RunConfig) -> None:
    """Raise a DataError unless the data have a test split, and items of each class where each is scored."""
    if not config.data.has("test") and config.data.test_share is None:
        raise DataError(
            f"a study compares on the test split, and the data has none ({config.data_name}): name it as "
            "`test` in data.source, or let each seed draw one from the training split: data.test_share=0.2"
        )
    if not config.task.scores_every_class():
        return
    splits = config.splits()
    classes = config.task.classes(splits.train)
    rarest, _ = rarest_and_unseen(config.task, classes, {"dev": splits.dev, "test": splits.test})
    for split, found in rarest.items():
        if found.count < _LEAST_ITEMS:
            remedy = (
                f"draw more (data.{split}_share)" if split in splits.report.drawn else f"give a larger {split} file"
            )
            raise DataError(
                f"a study on {config.data_name} must have at least {_LEAST_ITEMS} items of each class in "
                f"{split}, as {config.task.objective()} is undefined without them: it has {found.count} of "
                f"{found.label!r} among {splits.report.sizes[split]} records. Label more of them, or {remedy}"
            )
