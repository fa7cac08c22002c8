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
import re
import shlex
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import version
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from dice_ray.errors import BusyError, DiceRayError, InputError, RunError, first_line
from dice_ray.run import ray_internals
from dice_ray.run.cluster import check_answers
from dice_ray.run.folder import SUBMITTED

if TYPE_CHECKING:
    from ray.job_submission import JobDetails, JobSubmissionClient

_ADDRESS_VARIABLE: Final = "RAY_API_SERVER_ADDRESS"
_METADATA: Final = "dice_ray_command"
"""Entry in the metadata of our jobs, which those of others lack. The run's name is in Ray's own, `job_name`."""
_LEFT_BEHIND: Final = (
    *(".?*", "__pycache__", "venv", "node_modules"),
    *("dice_ray_runs", "mlflow.db*", "mlartifacts", "mlruns"),
)
"""Patterns of files that are not sent: hidden ones, which may hold secrets, caches and results."""


@dataclass(frozen=True)
class Job:
    """A command that was submitted to a cluster.

    Attributes:
        id: In Ray, of which each job has its own: the name of the run, and for a run's later jobs a number behind it.
        folder: Of its run, on the cluster.
        state: In Ray's words, in lower case: `pending`, `running`, `stopped`, `succeeded` or `failed`.
        seconds: From its submission to its end, or until now.
        status: The exit status of the command; None before it has ended, and where it was killed.
    """

    id: str
    folder: Path
    state: str
    seconds: float
    status: int | None

    def follow(self, write: Callable[[str], object], address: str | None = None) -> Job:
        """Pass on the output of the job until it ends."""

        async def tail(client: JobSubmissionClient) -> None:
            async for text in client.tail_job_logs(self.id):
                write(text)

        with _asked(address) as client:
            asyncio.run(tail(client))
            return _job(client.get_job_info(self.id), self.folder)


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
    folder = Path.cwd()
    excluded = [*_LEFT_BEHIND, *_ignored_by_git(folder)]
    if runs != folder and runs.is_relative_to(folder):
        excluded.append(f"/{runs.relative_to(folder)}")
    _check_files(folder, excluded)
    with _asked(address) as client:
        details = client.list_jobs()
        ours = [
            job for job in details if job.metadata and _METADATA in job.metadata and job.metadata["job_name"] == run
        ]
        if busy := [job for job in ours if not job.status.is_terminal()]:
            raise BusyError(
                f"{run} must have one job, and {busy[0].submission_id} is {busy[0].status.lower()}: "
                f"`ray job stop {busy[0].submission_id}` ends it"
            )
        taken = {each.submission_id for each in details}
        id_ = next(each for each in chain([run], (f"{run}-{number}" for number in count(2))) if each not in taken)
        client.submit_job(
            submission_id=id_,
            # On the machine that Ray finds for it, it would see the GPUs of others (Ray 2.60).
            entrypoint=_entrypoint(command, runs / run / SUBMITTED, hides_gpus=num_cpus > 0 and not num_gpus),
            entrypoint_num_cpus=num_cpus,
            entrypoint_num_gpus=num_gpus,
            metadata={"job_name": run, _METADATA: shlex.join(command), "dice_ray_runs": str(runs)},
            runtime_env={
                "working_dir": str(folder),
                "excludes": excluded,
                # Until Ray kills a job after SIGTERM: twice the ten seconds within which a command ends. In Ray's 3 s a
                # sweep does not record its trials (2.60).
                "env_vars": {**variables, "RAY_JOB_STOP_WAIT_TIME_S": "20"},
            },
        )
        return _job(client.get_job_info(id_), runs / run)


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
    before = os.environ.get(_ADDRESS_VARIABLE)
    address = address or before or "http://127.0.0.1:8265"
    check_answers(*_endpoint(address), address)
    from ray.exceptions import AuthenticationError
    from ray.job_submission import JobSubmissionClient

    logging.disable(logging.WARNING)  # Ray's notes on what it sends
    os.environ[_ADDRESS_VARIABLE] = address  # else RAY_ADDRESS overrides the argument (Ray 2.60)
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
        del os.environ[_ADDRESS_VARIABLE]
        os.environ.update({} if before is None else {_ADDRESS_VARIABLE: before})


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


def _job(details: JobDetails, folder: Path) -> Job:
    started, ended = details.start_time or 0, details.end_time or time.time() * 1000
    return Job(
        id=details.submission_id or "",
        folder=folder,
        state=details.status.lower(),
        seconds=max(0.0, ended - started) / 1000,
        status=details.driver_exit_code,
    )


def _ignored_by_git(folder: Path) -> list[str]:
    """Patterns of what git ignores, also by a file above the folder or of the user's own, which Ray does not read."""
    with suppress(FileNotFoundError):
        listing = ("ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z")
        found = subprocess.run(["git", "-C", folder, *listing], capture_output=True, check=False).stdout
        return ["/" + re.sub(r"([\\*?\[\]!# ])", r"\\\1", name) for name in os.fsdecode(found).split("\0") if name]
    return []


def _check_files(folder: Path, excluded: Sequence[str]) -> None:
    """Raise an InputError where a file to send is a link out of the folder, or all are larger than the server takes."""
    size, largest = 0, ray_internals.max_job_bytes()
    inside = folder.resolve()
    how = "name what it does not need in .gitignore or .rayignore"

    def add(path: Path) -> None:
        nonlocal size
        target = path.resolve()
        if path.is_symlink() and (not target.is_relative_to(inside) or path.is_relative_to(target)):
            raise InputError(
                f"the files that a job gets must lie in the working directory {folder}, and {path.relative_to(folder)} "
                f"is a link to {target}: {how}, or submit from another folder"
            )
        size += path.stat().st_size if path.is_file() else 0
        if size > largest:
            raise InputError(
                f"the files that a job gets must be at most {largest >> 20} MiB, and those of the "
                f"working directory {folder} are more: {how}, submit "
                "from another folder, or put large data into $DICE_RAY_DATA on the cluster"
            )

    ray_internals.visit_packed(folder, excluded, add)
