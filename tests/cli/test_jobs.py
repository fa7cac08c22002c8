"""What `dice-ray submit` refuses before anything is asked; jobs themselves are in `tests/run/test_jobs.py`."""

from __future__ import annotations

import json

import pytest
from ray.dashboard.modules.job.pydantic_models import JobDetails, JobType
from ray.job_submission import JobStatus
from typer.testing import CliRunner

from dice_ray import api
from dice_ray.cli.app import app
from dice_ray.run import jobs


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("", "Missing argument 'COMMAND'"),
        ("-- report search", "a job must be one of train, tune, ablate, resume, got 'report'"),
        ("-- tune mrpc --trails 3", "No such option: --trails"),
        ("tune mrpc --trials 0", "Invalid value for '--trials'"),
        ("-- resume", "Missing argument 'name'"),
        ("-- tune mrpc --address head:6379", "leave out its own --address"),
    ],
)
def test_a_command_that_cannot_be_submitted_is_a_wrong_usage(words: str, told: str) -> None:
    """Also its options, which would otherwise be found wrong on the cluster, where nobody looks."""
    result = CliRunner().invoke(app, ["submit", *words.split()])
    assert result.exit_code == 2
    assert told in " ".join(result.output.replace("│", " ").split())


def test_why_a_job_is_pending_or_failed_is_listed_below_the_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A job that waited for a GPU which no machine has was pending for ever, and nothing said why."""
    logs = "Job entrypoint command failed with exit code 2, last available logs:\nRay starts\ndice-ray: no [/x]\n"
    given = [
        ("a", JobStatus.PENDING, "It may be waiting for resources."),
        ("b", JobStatus.FAILED, logs),
        ("c", JobStatus.RUNNING, "Job is currently running."),
    ]
    found = jobs._ours(
        [
            JobDetails(
                type=JobType.SUBMISSION,
                submission_id=id_,
                status=status,
                message=message,
                entrypoint="",
                start_time=0,
                end_time=1000,
                metadata={"job_name": id_, jobs.COMMAND: "tune mrpc", jobs.RUNS: "/runs"},
            )
            for id_, status, message in given
        ]
    )
    monkeypatch.setattr(api, "jobs", lambda address: found)
    assert CliRunner().invoke(app, ["jobs"]).output.splitlines()[4:] == [
        "a: It may be waiting for resources.",
        "b: Job entrypoint command failed with exit code 2, last available logs: dice-ray: no [/x]",
    ]
    listed = json.loads(CliRunner().invoke(app, ["jobs", "--json"]).output)
    assert [job["reason"] for job in listed] == ["It may be waiting for resources.", logs.strip(), ""]
