"""What a machine of a cluster says of itself, and the checks that compare it with the driver."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dice_ray.errors import DiceRayError, one_line, reason_of

if TYPE_CHECKING:
    from dice_ray.config.schema import RunConfig

PACKAGES: Final = ("ray", "torch", "dice-ray")


@dataclass(frozen=True)
class Check:
    """What a check found on a machine.

    Attributes:
        machine: Its address, or `driver`.
        found: What holds there; empty if that could not be found out.
        problem: What must hold and how to fix it, on one line; empty if all is well.
    """

    name: str
    machine: str
    found: str
    problem: str = ""


@dataclass
class MachineFacts:
    """The facts that a machine reports of itself.

    Attributes:
        unseen: The driver's folders that it does not see, or cannot write to.
        contents: By the names of data and encoders, where they are and what identifies their content.
        problems: By the same names, why they are not there.
    """

    versions: dict[str, str]
    time: float
    unseen: str = ""
    contents: dict[str, tuple[str, str]] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)


def described(configs: Sequence[RunConfig]) -> MachineFacts:
    """The facts of this machine: its time and packages, and the data and encoders of these configurations."""
    answer = MachineFacts(
        {"python": platform.python_version(), **{each: version(each) for each in PACKAGES}}, time.time()
    )
    for config in configs:
        find_contents(config, answer)
    return answer


def differing(machine: str, answer: MachineFacts, own: MachineFacts) -> list[Check]:
    """The checks of packages, data and encoders, which must be those of the driver."""
    return [_versions(machine, answer, own), *_contents(machine, answer, own)]


def find_contents(config: RunConfig, answer: MachineFacts) -> None:
    """Identify the data and the encoder of a configuration on this machine."""
    from dice_ray.data import sources
    from dice_ray.models.pretrained import hub_commit
    from dice_ray.models.sources import digest, resolve_source
    from dice_ray.models.tiny import TINY

    def data() -> tuple[str, str]:
        read = {"synthetic": "generated", "hub": "loaded by its id"}.get(config.data.source.name, "read")
        return read, json.dumps(sources.key(config.data, config.task.positive_label()), sort_keys=True)

    def encoder() -> tuple[str, str]:
        name = config.model.encoder
        if (source := resolve_source(name)) != name or Path(name).is_dir():
            return f"in {source}", digest(name)
        return "on the hub, with access", hub_commit(name)

    finders = {f"data {config.data_name}": data, f"encoder {config.model.encoder}": encoder}
    for name, find in finders.items():
        if name == f"encoder {TINY}" or name in answer.contents:
            continue
        try:
            answer.contents[name] = find()
        except (DiceRayError, OSError) as error:
            answer.problems[name] = reason_of(error)


def _versions(machine: str, answer: MachineFacts, own: MachineFacts) -> Check:
    found = ", ".join(f"{package} {number}" for package, number in answer.versions.items())
    # A machine without GPUs may have another build of torch, and Ray itself compares Python's last number.
    differing = [
        f"{package}=={number.partition('+')[0]}, not {answer.versions[package]}"
        for package, number in own.versions.items()
        if number.partition("+")[0] != answer.versions[package].partition("+")[0]
    ]
    problem = f"it must have the driver's versions: install {', '.join(differing)}" if differing else ""
    return Check("versions", machine, found, problem)


def _contents(machine: str, answer: MachineFacts, own: MachineFacts) -> Iterator[Check]:
    for name, (where, identity) in answer.contents.items():
        _, expected = own.contents.get(name, ("", identity))
        must = f"its {name} must be that of the driver, and differs: copy the driver's files there"
        yield Check(name, machine, where, "" if identity == expected else must)
    for name, problem in answer.problems.items():
        yield Check(name, machine, "", f"it must have the {name}, which the driver does not send: {one_line(problem)}")
