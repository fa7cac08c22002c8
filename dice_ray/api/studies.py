"""What a study compares, and on what: its arms, and the variants that data, encoders and its file make together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from dice_ray import shipped
from dice_ray.api.presets import EMBEDDED_PRESET, Written, layers_of
from dice_ray.errors import DataError, InputError, UnknownNameError

if TYPE_CHECKING:
    from dice_ray.config.load import Layer
    from dice_ray.settings import Flat


@dataclass(frozen=True)
class Study:
    """What the file of a study says.

    Attributes:
        arms: What each arm writes, by path.
        baseline: The arm that the others are compared to.
        variants: What each variant writes below the arms, by path; none where it has only the one.
        data: The presets that it runs on where none is given.
    """

    arms: dict[str, Flat]
    baseline: str
    variants: dict[str, Flat] = field(default_factory=dict)
    data: tuple[str, ...] = (EMBEDDED_PRESET,)


def study_of(study: str) -> Study:
    """A shipped study, or one of a Python file."""
    from dice_ray.tuning.space import module_at

    studies = shipped.studies()
    if not study.endswith(".py") and study not in studies:
        raise UnknownNameError("study", study, studies)
    module = module_at(studies.get(study, study))
    if missing := [name for name in ("ARMS", "BASELINE") if not hasattr(module, name)]:
        raise InputError(f"a study must define ARMS and BASELINE, and {study} lacks {' and '.join(missing)}")
    variants = getattr(module, "VARIANTS", {})
    for name, value in (("ARMS", module.ARMS), ("VARIANTS", variants)):
        mappings = [value, *value.values()] if isinstance(value, dict) else [value]
        if not all(isinstance(each, dict) and all(isinstance(key, str) for key in each) for each in mappings):
            raise InputError(f"{name} of {study} must map names to what they write, path by path, got {value!r:.80}")
    if module.BASELINE not in module.ARMS:
        raise UnknownNameError("arm for BASELINE", str(module.BASELINE), module.ARMS)
    data = getattr(module, "DATA", (EMBEDDED_PRESET,))
    if not data or isinstance(data, str) or not all(isinstance(name, str) for name in data):
        raise InputError(f"DATA of {study} must be names of presets, got {data!r:.80}")
    return Study(module.ARMS, module.BASELINE, variants, tuple(data))


def layers_by_variant(
    data: Sequence[str | Path], settings: Written, encoders: Sequence[str], written: Mapping[str, Flat]
) -> dict[str | None, list[Layer]]:
    """The layers of each variant: every data set with every encoder with all that a study's file writes.

    A name has a part for each of the three that has several; without one there is a single variant without a name.
    """
    from dice_ray.config.load import values_layer

    found: dict[str | None, list[Layer]] = {}
    of_encoders: Sequence[str | None] = encoders or [None]
    of_file: Sequence[str | None] = [*written] or [None]
    for preset, encoder, extra in product(data, of_encoders, of_file):
        layers = layers_of(preset, settings)
        if encoder is not None:
            layers.append(values_layer("--encoder", {"model.encoder": encoder}))
        if extra is not None:
            layers.append(values_layer(f"variant {extra}", written[extra]))
        parts = [Path(preset).stem] if len(data) > 1 else []
        parts += [Path(encoder).name] if encoder is not None and len(encoders) > 1 else []
        name = ", ".join([*parts, *([extra] if extra is not None else [])]) or None
        if name in found:
            raise InputError(f"variants of a study must have names of their own, and two are {name!r}")
        found[name] = layers
    return found


def digest_of(layers: Sequence[Layer]) -> str:
    """The digest of the data of these layers."""
    from dice_ray.config.load import resolve
    from dice_ray.data import sources

    config = resolve(layers)
    return sources.load(config.data, config.task.positive_label()).digest


def check_test(layers: Sequence[Layer]) -> None:
    """Whether the data of these layers have a test split.

    Raises:
        DataError: They have none.
    """
    from dice_ray.config.load import resolve
    from dice_ray.data import sources

    config = resolve(layers)
    if not config.data.has("test") and config.data.test_share is None:
        raise DataError(
            f"a study compares on the test split, and the data has none ({sources.describe(config.data)}): name it as "
            "`test` in data.source, or have each seed draw one of its own from the training split: data.test_share=0.2"
        )
