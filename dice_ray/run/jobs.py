"""Jobs: commands of dice_ray that run on a cluster, by Ray's Job Submission SDK.

A job gets the working directory that it is submitted from: Ray packs and sends it. Ray unpacks it into a temporary
folder of each machine, which is gone when the job has ended; plans keep the paths of the user's own code, and a resumed
run must find it there. So a job first copies it into the folder of its run, which all machines see, and works there.

The package dice_ray itself is not sent. Ray names a wheel that it sends by its file name alone, so that a changed one
of the same version would not be sent again, and installs all that it depends on once more (Ray 2.60).
"""

from __future__ import annotations

import asyncio
import logging
import os
import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from dice_ray.errors import BusyError, DiceRayError, InputError, RunError, UnknownNameError, first_line
from dice_ray.run import ray_internals
from dice_ray.run.cluster import check_answers

if TYPE_CHECKING:
    from ray.job_submission import JobDetails, JobSubmissionClient

ADDRESS_VARIABLE: Final = "RAY_API_SERVER_ADDRESS"
DEFAULT_ADDRESS: Final = "http://127.0.0.1:8265"
COMMAND: Final = "dice_ray_command"
"""Entry in a job's metadata, as `RUNS`; jobs of others have none. The run's name is in Ray's own, `job_name`."""
RUNS: Final = "dice_ray_runs"
LEFT_BEHIND: Final = (
    ".?*",
    "__pycache__",
    "venv",
    "node_modules",
    "dice_ray_runs",
    "mlflow.db*",
    "mlartifacts",
    "mlruns",
)
"""Patterns of files that are not sent: hidden ones, which may hold secrets, caches and results."""
STOP_SECONDS: Final = 20
"""How long a job has to end after SIGTERM until it is killed: twice the ten seconds within which a command ends, as its
runs get `stopping.GRACE` and are then recorded. Ray would give it 3 s."""
ENDED: Final = ("stopped", "succeeded", "failed")


@dataclass(frozen=True)
class Job:
    """A command that was submitted to a cluster.

    Attributes:
        id: In Ray, of which each job has its own: the name of the run, and for a run's later jobs a number behind it.
        run: Name of the run, sweep or study.
        command: The words behind `dice-ray`.
        runs: The folder of runs on the cluster.
        state: `pending`, `running`, or one of `ENDED`.
        started: When it was submitted, in ISO 8601.
        seconds: From then to its end, or until now.
        status: The exit status of the command; None before it has ended, and where it was killed.
        reason: Why it is pending or failed, in Ray's words, with the end of its output; empty in other states.
    """

    id: str
    run: str
    command: tuple[str, ...]
    runs: Path
    state: str
    started: str
    seconds: float
    status: int | None
    reason: str = ""

    @property
    def folder(self) -> Path:
        """Of the run."""
        return self.runs / self.run

    @property
    def has_ended(self) -> bool:
        return self.state in ENDED


def submit(
    command: Sequence[str],
    run: str,
    runs: Path,
    variables: Mapping[str, str],
    *,
    num_cpus: float = 0,
    num_gpus: float = 0,
    address: str | None = None,
) -> Job:
    """Submit a command, with the files of the working directory.

    Args:
        command: The words behind `dice-ray`.
        run: Name of the run, sweep or study of the command.
        runs: The folder of runs on the cluster, an absolute path.
        variables: Environment variables of all processes of the job.
        num_cpus: CPUs that the command's own process takes; with none and no GPUs it runs on the head.
        num_gpus: Its GPUs.
        address: Of Ray's dashboard.

    Raises:
        InputError: The files are too large, or the address is malformed.
        BusyError: A job of this name has not ended.
        RunError: No cluster answers, or it refuses the job.
    """
    from dice_ray.run.folder import SUBMITTED

    folder, excluded = Path.cwd(), list(LEFT_BEHIND)
    if runs != folder and runs.is_relative_to(folder):
        excluded.append(f"/{runs.relative_to(folder)}")
    _check_size(folder, excluded)
    with _asked(address) as client:
        details = client.list_jobs()
        if busy := [job for job in _ours(details) if job.run == run and not job.has_ended]:
            raise BusyError(
                f"{run} must have one job, and {busy[0].id} is {busy[0].state}: `dice-ray stop {busy[0].id}` ends it"
            )
        taken = {each.submission_id for each in details}
        id_ = next(each for each in chain([run], (f"{run}-{number}" for number in count(2))) if each not in taken)
        client.submit_job(
            submission_id=id_,
            # On the machine that Ray finds for it, it would see the GPUs of others (Ray 2.60).
            entrypoint=_entrypoint(command, runs / run / SUBMITTED, hides_gpus=num_cpus > 0 and not num_gpus),
            entrypoint_num_cpus=num_cpus,
            entrypoint_num_gpus=num_gpus,
            metadata={"job_name": run, COMMAND: shlex.join(command), RUNS: str(runs)},
            runtime_env={
                "working_dir": str(Path.cwd()),
                "excludes": excluded,
                "env_vars": {**variables, "RAY_JOB_STOP_WAIT_TIME_S": str(STOP_SECONDS)},
            },
        )
        return _job(client.get_job_info(id_))


def jobs(address: str | None = None) -> list[Job]:
    """The jobs of dice_ray that a cluster knows, the last one first."""
    with _asked(address) as client:
        return _ours(client.list_jobs())


def stop(name: str, address: str | None = None) -> Job:
    """Send SIGTERM to a job, such that its run can be resumed, and wait for its end.

    Args:
        name: Of the job or its run.
        address: Of Ray's dashboard.

    Raises:
        UnknownNameError: The cluster knows no such job.
        RunError: It has ended, or does not end.
    """
    with _asked(address) as client:
        known = _ours(client.list_jobs())
        named = [job for job in known if name in (job.id, job.run)]
        if not named:
            raise UnknownNameError("job", name, [job.id for job in known])
        job = next((job for job in named if not job.has_ended), named[0])
        if job.has_ended:
            raise RunError(f"a job must be running to be stopped, and {job.id} has {job.state}")
        client.stop_job(job.id)
        until = time.monotonic() + 2 * STOP_SECONDS
        while not (job := _job(client.get_job_info(job.id))).has_ended:
            if time.monotonic() > until:
                raise RunError(f"{job.id} was told to stop and is still {job.state} after {2 * STOP_SECONDS} s")
            time.sleep(0.2)
        return job


def follow(job: str, write: Callable[[str], object], address: str | None = None) -> Job:
    """Pass on the output of a job until it ends."""

    async def tail(client: JobSubmissionClient) -> None:
        async for text in client.tail_job_logs(job):
            write(text)

    with _asked(address) as client:
        asyncio.run(tail(client))
        return _job(client.get_job_info(job))


def _entrypoint(command: Sequence[str], folder: Path, *, hides_gpus: bool = False) -> str:
    """What the shell of a job runs on the cluster."""
    program, folder_ = f"dice-ray {version('dice-ray')}", shlex.quote(str(folder))
    return (
        f'test "$(dice-ray --version)" = "{program}" || '
        f'{{ echo "dice-ray: the cluster must have {program}, and has $(dice-ray --version)"; exit 2; }}; '
        f"mkdir -p {folder_} && chmod 700 {folder_} && cp -R . {folder_} && cd {folder_} && "
        f"exec {'env CUDA_VISIBLE_DEVICES= ' if hides_gpus else ''}{shlex.join(['dice-ray', *command])}"
    )


@contextmanager
def _asked(address: str | None) -> Iterator[JobSubmissionClient]:
    """Ray's client; errors in the block are reported in one line."""
    before = os.environ.get(ADDRESS_VARIABLE)
    address = address or before or DEFAULT_ADDRESS
    check_answers(*_endpoint(address), address)
    from ray.exceptions import AuthenticationError
    from ray.job_submission import JobSubmissionClient

    logging.disable(logging.WARNING)  # Ray's notes on what it sends
    os.environ[ADDRESS_VARIABLE] = address  # else RAY_ADDRESS overrides the argument (Ray 2.60)
    try:
        yield JobSubmissionClient(address)
    except DiceRayError:
        raise
    except AuthenticationError as error:
        raise RunError(
            f"the cluster at {address} must be given its token: set RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN or the "
            f"file ~/.ray/auth_token to the token of its head ({first_line(error).partition('. ')[0]})"
        ) from error
    except Exception as error:
        raise RunError(f"the cluster must take the request at {address}: {_reason(error)}") from error
    finally:
        logging.disable(logging.NOTSET)
        del os.environ[ADDRESS_VARIABLE]
        os.environ.update({} if before is None else {ADDRESS_VARIABLE: before})


def _endpoint(address: str) -> tuple[str, int]:
    """Host and port of a URL."""
    with suppress(ValueError):
        url, ports = urlsplit(address), {"http": 80, "https": 443}
        if url.hostname and url.scheme in ports:
            return url.hostname, url.port or ports[url.scheme]
    raise InputError(
        f"the address of a cluster's jobs must be http://HOST:8265, that of its dashboard, got {address!r}"
    )


def _reason(error: Exception) -> str:
    """The line of an error's message that says why: the last one of the traceback that Ray's server answers with."""
    lines = [line for line in str(error).splitlines() if any(map(str.isalpha, line))]
    return lines[-1] if lines and "Traceback" in lines[0] else first_line(error)


def _ours(details: Sequence[JobDetails]) -> list[Job]:
    ours = [each for each in details if COMMAND in (each.metadata or {})]
    return [_job(each) for each in sorted(ours, key=lambda each: each.start_time or 0, reverse=True)]


def _job(details: JobDetails) -> Job:
    metadata, started = details.metadata or {}, (details.start_time or 0) / 1000
    ended = details.end_time / 1000 if details.end_time else time.time()
    return Job(
        id=details.submission_id or "",
        run=metadata["job_name"],
        command=tuple(shlex.split(metadata[COMMAND])),
        runs=Path(metadata[RUNS]),
        state=details.status.lower(),
        started=datetime.fromtimestamp(started, UTC).isoformat(timespec="seconds"),
        seconds=max(0.0, ended - started),
        status=details.driver_exit_code,
        reason=(details.message or "").strip() if details.status in ("PENDING", "FAILED") else "",
    )


def _check_size(folder: Path, excluded: Sequence[str]) -> None:
    """The files that would be sent must not exceed what the server takes; the first file too many ends the count.

    Raises:
        InputError: They do.
    """
    size, largest = 0, ray_internals.max_job_bytes()

    def add(path: Path) -> None:
        nonlocal size
        size += path.stat().st_size if path.is_file() else 0
        if size > largest:
            raise InputError(
                f"the files that a job gets must be at most {largest >> 20} MiB, and those of the "
                f"working directory {folder} are more: name what it does not need in .gitignore or .rayignore, submit "
                "from another folder, or put large data into $DICE_RAY_DATA on the cluster"
            )

    ray_internals.visit_packed(folder, excluded, add)
