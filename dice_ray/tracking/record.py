"""What one run stores in MLflow from its start to its end, the same for a run trained alone and for a trial or cell.

The metrics and tags that are derived when a run ends (the best value, the other metrics of the retained checkpoint,
whether the model collapsed) are formed here and nowhere else: tables and reports rely on their meaning.
"""

from __future__ import annotations

import getpass
import os
import platform
import subprocess
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Final

from dice_ray.settings import Branch, Flat, nested
from dice_ray.tracking import schema
from dice_ray.tracking.store import store_uri
from dice_ray.tracking.writer import Writer

_NUM_STEP_POINTS: Final = 200
"""About how many steps of a run are stored between its evaluations."""


class RunRecord:
    """One run in MLflow by our id of it, written through a writer that other runs of its experiment may share.

    A run that another process opened is resumed by opening it again.
    """

    def __init__(self, writer: Writer, id_: str) -> None:
        self._writer, self._id = writer, id_
        self._last_step = 0
        self._constants: dict[str, str] = {}

    def opened(
        self,
        name: str,
        params: Flat,
        tags: Mapping[str, str],
        config_yaml: str | None = None,
        *,
        parent: str | None = None,
    ) -> None:
        """The run starts or resumes; a run whose settings cannot be resolved has no `config_yaml`."""
        self._writer.open(self._id, name=name, params=params, tags=tags, parent=parent)
        if config_yaml is not None:
            self._writer.text(self._id, schema.CONFIG_FILE, config_yaml)

    def data(self, name: str, digest: str, source: Branch) -> None:
        """The run uses the data of this name, digest and source."""
        self._writer.data(self._id, name, digest, source.name, nested(source))

    def evaluated(self, step: int, metrics: Mapping[str, float]) -> None:
        """The run was evaluated after this many optimizer steps."""
        values, constants = without_constants(metrics)
        self._writer.metrics(self._id, step, values)
        if new := {name: value for name, value in constants.items() if self._constants.get(name) != value}:
            self._writer.tags(self._id, new)
            self._constants |= new

    def steps(self, step: int, num_steps: int, metrics: Mapping[str, float]) -> None:
        """The run has done `step` of `num_steps` optimizer steps; about `_NUM_STEP_POINTS` of these calls are stored.

        Of the metrics, `schema.STEP_METRICS` are stored as `step/<name>`, and others are ignored.
        """
        if step - self._last_step >= num_steps / _NUM_STEP_POINTS:
            self._last_step = step
            self._writer.metrics(self._id, step, {f"step/{name}": metrics[name] for name in schema.STEP_METRICS})

    def ended(
        self,
        status: schema.Status,
        *,
        objective: str,
        best: tuple[int, Mapping[str, float]] | None,
        kept: Iterable[str] = (),
        test: Mapping[str, float] | None = None,
        tags: Mapping[str, str] | None = None,
        texts: Mapping[str, str] | None = None,
    ) -> None:
        """The run ended; without an evaluation only its tags, texts and status are stored.

        `best` has the step and the metrics of the evaluation that the objective chose the checkpoint by, as `dev/f1`.
        Of these metrics, those in `kept` are stored as `kept` ones (`schema.sibling`).
        """
        final_tags = dict(tags or {})
        if best:
            step, checkpoint = best
            final = {schema.sibling(objective, "best"): checkpoint[objective]}
            final |= {schema.sibling(name, "kept"): checkpoint[name] for name in kept if name in checkpoint}
            # The step of their checkpoint is also that of a later `evaluate`, whose values thus replace these: MLflow's
            # latest value is the one of the highest step.
            self.evaluated(step, {**final, **(test or {})})
            # On test if the run is scored there, else at its best evaluation on dev.
            scores, split = (test, "test/") if test else (checkpoint, objective)
            final_tags[schema.COLLAPSED] = "true" if scores.get(schema.sibling(split, "collapsed")) else "false"
        for file, content in (texts or {}).items():
            self._writer.text(self._id, file, content)
        if final_tags:
            self._writer.tags(self._id, final_tags)
        self._writer.end(self._id, status)


def without_constants(metrics: Mapping[str, float]) -> tuple[dict[str, float], dict[str, str]]:
    """The metrics that change in a run, and the others as tags.

    >>> without_constants({"dev/f1": 0.5, "dev/constant_f1": 0.25})
    ({'dev/f1': 0.5}, {'dice_ray.constant.dev/constant_f1': '0.25'})
    """
    values = {name: value for name, value in metrics.items() if not schema.is_constant(name)}
    constants = {
        f"{schema.CONSTANT}.{name}": repr(float(value)) for name, value in metrics.items() if name not in values
    }
    return values, constants


def environment_tags() -> dict[str, str]:
    """The environment of a run, for this process and its working directory: git commit, versions, hardware, user."""
    user = {}
    with suppress(KeyError, OSError, ImportError):  # the user of a container may have no name
        user = {schema.USER: getpass.getuser()}
    return _git(Path.cwd()) | _versions() | hardware_tags() | user | {schema.SOURCE: "dice-ray"}


def active_run_tag() -> dict[str, str]:
    """The tag that nests a run below the one that this process has started by `mlflow.start_run()` in our store."""
    if "mlflow" not in sys.modules:
        return {}
    import mlflow

    run = mlflow.active_run()
    if run is None or store_uri(mlflow.get_tracking_uri()) != store_uri():
        return {}
    return {schema.PARENT: run.info.run_id}


@lru_cache(maxsize=1)
def hardware_tags() -> dict[str, str]:
    """The processor, its cores, and the GPU of this machine."""
    import torch

    gpus = [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())]
    # The name of the processor's model: Linux's, else Python's, else the architecture.
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines() if cpuinfo.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    cpu = names[0] if names else platform.processor() or platform.machine()
    counted = [f"{gpus.count(name)} x {name}" for name in dict.fromkeys(gpus)]
    return {schema.CPU: cpu, schema.CORES: str(os.cpu_count()), schema.GPU: ", ".join(counted) or "none"}


def _git(folder: Path) -> dict[str, str]:
    """The commit, and whether tracked files differ from it; empty outside of a repository or without git."""
    commit = _git_output(folder, "rev-parse", "HEAD")
    if commit is None:
        return {}
    changes = _git_output(folder, "status", "--porcelain", "--untracked-files=no")
    dirty = {} if changes is None else {schema.GIT_DIRTY: "true" if changes else "false"}
    return {schema.GIT_COMMIT: commit, **dirty}


def _git_output(folder: Path, *arguments: str) -> str | None:
    """What git prints; None where it fails, is not installed or takes over 10 s, as in a very large repository."""
    # Without the option, `git status` may rewrite the index of a repository that somebody else is working in.
    command = ["git", "-C", str(folder), "--no-optional-locks", *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


@lru_cache(maxsize=1)
def _versions() -> dict[str, str]:
    packages = ("dice-ray", "torch", "transformers", "ray", "optuna", "mlflow")
    versions = {package.replace("-", "_"): metadata.version(package) for package in packages}
    versions["python"] = platform.python_version()
    return {f"{schema.VERSION}.{name}": version for name, version in versions.items()}
