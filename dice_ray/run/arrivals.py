"""Machines that join a cluster after its check: each is checked when the first trial starts there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dice_ray.config.schema import RunConfig
from dice_ray.files import RUNS, is_url
from dice_ray.run import cluster
from dice_ray.run.doctor import HOW_TO_SHARE
from dice_ray.run.machine_facts import MachineFacts, described, differing


@dataclass(frozen=True)
class Admission:
    """What must hold of a machine that joins later.

    Attributes:
        known: Ids of the machines that were checked at the start.
        configs: Their data and encoders must be there.
        driver: The facts of the driver's own machine.
    """

    known: frozenset[str]
    configs: tuple[RunConfig, ...]
    driver: MachineFacts


def admission(joined: cluster.Cluster, configs: Sequence[RunConfig]) -> Admission | None:
    """What must hold of machines that join after this process; None where none can join."""
    # Not those of this moment: minutes may have passed since the check, as while GPU memory is measured.
    return None if joined.is_fixed else Admission(joined.ids, tuple(configs), described(configs))


def problem(admission: Admission | None, surroundings: Mapping[str, str], folder: Path) -> str:
    """Why the machine of this process is not ready for trials, if it has joined later; empty if it is ready."""
    import ray

    if admission is None or ray.get_runtime_context().get_node_id() in admission.known:
        return ""
    found = _found(admission, surroundings, folder)
    return f"{ray.util.get_node_ip_address()}: {found}" if found else ""


def _found(admission: Admission, surroundings: Mapping[str, str], folder: Path) -> str:
    must_see = () if is_url(surroundings.get(RUNS, "")) else (Path(surroundings[cluster.FOLDER]), folder)
    if unseen := next((each for each in must_see if not each.is_dir()), None):
        return f"it must see {unseen} under the same path: {HOW_TO_SHARE}"
    cluster.enter(surroundings)
    checks = differing("", described(admission.configs), admission.driver)
    return "; ".join(check.problem for check in checks if check.problem)
