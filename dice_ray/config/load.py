"""Layers of settings (preset, --set, arm, trial), resolved to one RunConfig.

A layer holds only the values that were written in one place, never defaults. Defaults are filled in once, after the
last layer: a derived default depends on values that a later layer may still change. So sweeps and studies carry layers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Any, Final

import yaml
from pydantic import ValidationError

from dice_ray.config.checks import check
from dice_ray.config.schema import RunConfig
from dice_ray.errors import ConfigError, ConflictError, Problem, shown
from dice_ray.settings import Nested, merge, nest, nested, problems_of, without_numpy

_MAX_TEXT: Final = 100_000
_MAX_FILE: Final = 1_000_000
"""The longest value and the longest preset, in characters: PyYAML takes some seconds for a million."""


@dataclass(frozen=True)
class Layer:
    """The values written in one place, nested as in YAML."""

    origin: str
    values: Nested


def resolve(layers: Sequence[Layer]) -> RunConfig:
    """The configuration of these layers; later ones override earlier ones.

    Raises:
        ConfigError: Every problem at once, each with its path and the layer that wrote it; a ConflictError if each
            section is valid by itself.
    """
    try:
        config = RunConfig.model_validate(_merged(layers))
    except ValidationError as error:
        kind, problems = ConfigError, problems_of(error, RunConfig)
    else:
        kind, problems = ConflictError, check(config)
        if not problems:
            return config
    raise kind([replace(problem, origin=_origin(problem, layers)) for problem in problems])


def _merged(layers: Sequence[Layer]) -> Nested:
    return reduce(lambda below, layer: merge(RunConfig, below, layer.values), layers, Nested())


def read_layer(path: Path) -> Layer:
    """A preset file as a layer; a ConfigError if it is not YAML of sections, or writes a key twice."""
    try:
        text = path.read_text(encoding="utf-8")
        if len(text) > _MAX_FILE:
            must = f"must be shorter than {_MAX_FILE:,} characters"
            raise ConfigError([Problem(str(path), must, f"{len(text):,}")])
        values = parse_yaml(text)
    except (NotYamlError, UnicodeDecodeError) as error:
        raise ConfigError([Problem(str(path), "must be YAML in UTF-8", " ".join(str(error).split()))]) from error
    if not isinstance(values, dict):
        raise ConfigError([Problem(str(path), "must hold sections: task, data, ...", shown(values))])
    return Layer(path.name, nest({str(key): value for key, value in values.items()}))


class NotYamlError(ValueError):
    """A text is not YAML; the message says what is wrong with it."""


def parse_yaml(text: str) -> Any:
    """Parse YAML without objects; a key that is written twice is an error.

    Raises:
        NotYamlError: The text is no YAML, is nested too deep, or has a value that Python cannot hold.
    """
    try:
        return yaml.load(text, _UniqueKeyLoader)  # nosec B506  # a SafeLoader
    except RecursionError:
        raise NotYamlError("it is nested too deep") from None
    except Exception as error:
        # Beside its own errors PyYAML lets through those of Python: a ValueError for 2024-13-45 and a number of 5000
        # digits, an AttributeError for `!!timestamp x`, a KeyError for `!!bool x`, an IndexError for `!!int ''`.
        reason = str(error) if isinstance(error, yaml.YAMLError | ValueError) else "a value is malformed"
        raise NotYamlError(reason) from error


def set_layer(assignments: Sequence[str]) -> Layer:
    """`--set loss.focal.gamma=2` arguments as a layer; values are YAML.

    >>> set_layer(["loss.focal.gamma=2", "training.lr=1e-4"]).values
    {'loss': {'focal': {'gamma': 2}}, 'training': {'lr': '1e-4'}}
    """
    values: dict[str, Any] = {}
    problems = []
    for assignment in assignments:
        path, equals, text = assignment.partition("=")
        if not equals or not path:
            problems.append(Problem("--set", "must be path=value", shown(assignment)))
            continue
        if len(text) > _MAX_TEXT:
            must = f"must be shorter than {_MAX_TEXT:,} characters"
            problems.append(Problem(path, must, f"{len(text):,}", origin="--set"))
            continue
        try:
            # PyYAML reads 2e-5 as a string (YAML 1.1 wants 2.0e-5); validation turns it into a number.
            values[path] = parse_yaml(text)
        except NotYamlError:
            problems.append(Problem(path, "must be a YAML value", shown(text), origin="--set"))
    if problems:
        raise ConfigError(problems)
    return Layer("--set", nest(values))


def assignment(path: str, value: Any) -> str:
    """A setting as an argument of `--set`: `set_layer` reads this very value, a text in quotes where it needs them.

    >>> assignment("training.epochs", 2), assignment("loss", "dice"), assignment("task.sentence_pair.positive", "1")
    ('training.epochs=2', 'loss=dice', "task.sentence_pair.positive='1'")
    """
    plain = without_numpy(value)
    text: str = yaml.safe_dump(plain, default_flow_style=True, width=_MAX_TEXT, sort_keys=False, allow_unicode=True)
    written = text.rstrip().removesuffix("\n...")  # the end of the document, after a value without quotes or brackets
    return f"{path}={written}"


def values_layer(origin: str, values: Mapping[str, Any]) -> Layer:
    """Values by path, of a trial, an arm or a notebook, as a layer."""
    return Layer(origin, nest(values))


def as_yaml(config: RunConfig) -> str:
    """The resolved configuration as YAML, as stored with a run: it can be used as a preset."""
    # By libyaml, the same text in a tenth of the time: 4 ms for each trial are seconds where MLflow lacks many.
    text: str = yaml.dump(nested(config), Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True)
    return text


def as_written(layers: Sequence[Layer]) -> str:
    """The merged layers as YAML, without defaults: it can be used as a preset."""
    text: str = yaml.safe_dump(_merged(layers), sort_keys=False, allow_unicode=True)
    return text


class _UniqueKeyLoader(yaml.SafeLoader):
    """YAML in which duplicate keys are an error; PyYAML silently keeps the last one."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key in (key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if key in seen:
                message = f"the key {key!r} is written twice"
                raise yaml.constructor.ConstructorError(None, None, message, node.start_mark)
            seen.add(key)
        mapping: dict[Any, Any] = super().construct_mapping(node, deep)
        return mapping


def _origin(problem: Problem, layers: Sequence[Layer]) -> str | None:
    """The last layer that wrote the path of a problem, or else the nearest section that contains it."""
    parts = problem.path.split(".")
    for depth in range(len(parts), 0, -1):
        for layer in reversed(layers):
            if writes(layer.values, parts[:depth]):
                return layer.origin
    return problem.origin


def writes(values: Any, parts: Sequence[str]) -> bool:
    """Whether values, nested by path, hold the path of these parts."""
    for number, part in enumerate(parts, start=1):
        if isinstance(values, str) and values == part:
            return number == len(parts)
        if not isinstance(values, Mapping) or part not in values:
            return False
        values = values[part]
    return True
