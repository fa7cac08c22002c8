"""Clusters: each machine is checked, and commands run there as jobs of Ray."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from dice_ray.api import library
from dice_ray.api.presets import Written, validate
from dice_ray.errors import InputError, RunError, counted
from dice_ray.files import runs_folder, store_url, without_password
from dice_ray.run.names import check_name, new_name, valid_name

if TYPE_CHECKING:
    from dice_ray.config.schema import RunConfig
    from dice_ray.run.cluster import Cluster
    from dice_ray.run.doctor import Check
    from dice_ray.run.submit import Job
    from dice_ray.run.tables import Preset


def doctor(preset: Preset | None = None, settings: Written = (), *, address: str | None = None) -> list[Check]:
    """Check every machine of a cluster, and MLflow; a check that fails has a `problem`, which says how to fix it.

    Args:
        preset: Name of a shipped preset, a YAML file, a table or `Tables`, whose data and encoder every machine must
            have, and for which the cluster must be large enough; only the cluster is checked where not given.
        settings: Values over it.
        address: As in `tune`.

    Raises:
        ConfigError: The preset with the settings is invalid.
        RunError: No cluster answers.
    """
    from dice_ray.output import redirected
    from dice_ray.run import cluster
    from dice_ray.run.doctor import Needs, examined
    from dice_ray.run.folder import LOG

    configs: tuple[RunConfig, ...] = ()
    if preset is not None:
        preset = library.preset_of(preset)
        configs = (validate(preset, settings).with_data_name(Path(preset).stem),)
    folder = runs_folder()
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="dice_ray-") as scratch:
        with cluster.started(address, log=Path(scratch) / LOG) as joined:
            checks = examined(Needs(folder, configs)) + [_size(config, joined) for config in configs]
        with redirected(Path(scratch) / LOG):
            return [*checks, _mlflow()]


def _size(config: RunConfig, joined: Cluster) -> Check:
    """Whether a trial fits on the machines."""
    from dice_ray.run.doctor import Check
    from dice_ray.tuning.resources import demand, unmeasured

    try:
        num_trials = demand(config, 1, unmeasured(config, joined.nodes)).slots(joined.nodes)
    except RunError as error:
        return Check("size", "cluster", "", f"{error}: add machines, or lower these settings")
    return Check("size", "cluster", f"{counted(num_trials, 'trial')} at once")


def _mlflow() -> Check:
    from dice_ray.run.doctor import DRIVER, Check
    from dice_ray.tracking.store import check_answers

    try:
        return Check("MLflow", DRIVER, check_answers())
    except RunError as error:
        return Check("MLflow", DRIVER, "", str(error))


def submit(
    command: Sequence[str],
    presets: Sequence[str] = (),
    settings: Written = (),
    *,
    study: str | None = None,
    name: str | None = None,
    runs: Path | None = None,
    address: str | None = None,
) -> Job:
    """Run a command on a cluster, as a job that continues when this process has ended.

    A command with the same name, submitted again after the job's end, continues its run.

    Args:
        command: `train`, `tune`, `ablate` or `resume` with its arguments, which the parameters below repeat.
        presets: The presets of the command, which are checked before it is submitted.
        settings: Values over them.
        study: Of `ablate`.
        name: Of the run, sweep or study; generated where not given.
        runs: The folder of runs, which all machines of the cluster see; `$DICE_RAY_RUNS` where not given.
        address: Of Ray's dashboard: `http://HOST:8265`.

    Raises:
        ConfigError: A preset with the settings is invalid.
        InputError: The folder of runs is not an absolute path, or the working directory is too large.
        BusyError: A job of the run has not ended.
        RunError: No cluster answers, or it refuses the job.
    """
    from dice_ray.run.folder import stored_config
    from dice_ray.run.submit import submit as submit_job

    url = None if runs else store_url()
    runs = runs or runs_folder()
    if not runs.is_absolute():
        raise InputError(
            "the runs of a job must be in a folder that all machines of the cluster see: give its absolute path by "
            f"--runs or DICE_RAY_RUNS, got {without_password(url) if url else runs}"
        )
    configs = [validate(preset, settings) for preset in presets]
    kind, stem = command[0], Path(study or [*presets, ""][0]).stem
    if study is not None:
        library.read_study(study)
        made_up = valid_name(stem)
    else:
        made_up = new_name(f"{stem}-{configs[0].loss.name if kind == 'train' else kind}") if configs else ""
    run = check_name(name or made_up)
    # A resumed run has its own; this machine may not see the folder, where no CPUs and GPUs are reserved.
    config = configs[0] if kind == "train" else stored_config(runs / run) if kind == "resume" else None
    num_cpus, num_gpus = 0, 0.0
    if config and not config.launch.uses_ray_train:  # its own process trains: Ray finds a machine for it
        launch = config.launch
        if launch.gpus == "auto":
            raise InputError(
                "launch.gpus of a job that trains one run must be a number, got auto: give --gpus-per-worker to "
                "`train`, which resumes a run too if its --name is given"
            )
        if launch.accelerator_type:
            raise InputError(
                "launch.accelerator_type of a job that trains one run must be null, as Ray places a job by the number "
                f"of its GPUs alone, got {launch.accelerator_type}"
            )
        num_cpus, num_gpus = launch.threads or 1, launch.gpus
    return submit_job(
        command if name else [*command, "--name", made_up],
        run,
        runs,
        _variables(runs),
        num_cpus=num_cpus,
        num_gpus=num_gpus,
        address=address,
    )


def _variables(runs: Path) -> dict[str, str]:
    """The environment variables of a job: those that a joined cluster gets too, and where results are stored."""
    from dice_ray.run.cluster import FOLDER, surroundings

    store = os.environ.get("MLFLOW_TRACKING_URI") or f"sqlite:///{runs / 'mlflow.db'}"
    if without_password(store) != store:
        raise InputError(
            "MLFLOW_TRACKING_URI must not hold a password, which all users of the cluster would see, got "
            f"{without_password(store)}: set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD on the cluster"
        )
    if _is_relative(store):
        raise InputError(
            "MLFLOW_TRACKING_URI must be the same store in every folder: give the absolute path of a file that all "
            f"machines of the cluster see, got {store}"
        )
    variables = {name: value for name, value in surroundings().items() if name != FOLDER}
    data = os.path.normpath(variables.get("DICE_RAY_DATA", ""))
    if Path(data).parts[:1] == ("..",):
        raise InputError(
            f"DICE_RAY_DATA must be an absolute path or lie in the working directory, which is sent, got {data}"
        )
    return {**variables, "DICE_RAY_RUNS": str(runs), "MLFLOW_TRACKING_URI": store}


def _is_relative(store: str) -> bool:
    """Whether a URI of MLflow names a file or folder by its path from the working directory.

    >>> [_is_relative(uri) for uri in ("sqlite:///mlflow.db", "sqlite:////runs/mlflow.db", "mlruns", "file:///runs")]
    [True, False, True, False]
    """
    parts = urlsplit(store)
    if parts.scheme.startswith("sqlite"):  # for SQLAlchemy, the file begins behind the third slash
        return not parts.path.startswith("//")
    return parts.scheme in ("", "file") and not parts.path.startswith("/") and store != "databricks"
