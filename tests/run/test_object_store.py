"""Runs whose machines share no disk: what one of them writes, another one continues and reads."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from pyarrow.fs import FileSelector, FileType, copy_files

from dice_ray.config.load import Layer, resolve
from dice_ray.errors import RefusedError
from dice_ray.files import opened
from dice_ray.run import object_store, trained
from dice_ray.run.build import train_here
from dice_ray.run.folder import LEDGER, PLAN
from dice_ray.training.loop import Evaluation, StepProgress
from tests.machines import machine_apart, machines, of_driver
from tests.object_store import CREDENTIALS, s3

Machine: TypeAlias = Callable[[str], None]

RUN = Path("dice_ray_runs/sweep/trials/0001")
TINY = {
    "task": {"sentence_pair": {"positive": "1"}},
    "data": {"source": {"synthetic": {"size": 100}}},
    "training": {"epochs": 4, "batch_size": 20},
}


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in CREDENTIALS.items():
            patch.setenv(name, value)
        with s3(tmp_path_factory.mktemp("s3")) as url:
            yield url


@pytest.fixture(params=["s3", "file", "local"])
def url(request: pytest.FixtureRequest, bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A store of each kind: by pyarrow over a network, by pyarrow on a disk, by fsspec."""
    of_test = bucket.replace("/runs?", f"/{tmp_path.name}?")
    url = of_test if request.param == "s3" else f"{request.param}://{tmp_path}/store"
    monkeypatch.setenv("DICE_RAY_RUNS", url)
    return url


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Call it to stand on a machine of this name, which has a disk of its own."""

    def stand(name: str) -> None:
        (tmp_path / name).mkdir(exist_ok=True)
        monkeypatch.chdir(tmp_path / name)

    return stand


def stored(url: str) -> set[str]:
    filesystem, root = opened(url)
    infos = filesystem.get_file_info(FileSelector(root, recursive=True, allow_not_found=True))
    return {info.path.removeprefix(f"{root}/") for info in infos if info.type == FileType.File}


def test_a_machine_finds_what_another_one_has_sent(url: str, machine: Machine) -> None:
    """Finds a stale file that is kept, a local one that is not replaced, unfinished names, and files that stay."""
    machine("one")
    (RUN / "encoder").mkdir(parents=True)
    for name in ("config.yaml", "best.pt", "last.pt", "encoder/config.json", "log.txt", "before.pt"):
        (RUN / name).write_text(f"first {name}")
    object_store.send(RUN)
    key = RUN.relative_to("dice_ray_runs")
    names = {"config.yaml", "best.pt", "last.pt", "encoder/config.json"}
    assert stored(url) == {f"{key}/{name}" for name in names}
    machine("two")
    object_store.fetch(RUN, checkpoints=False)
    assert not (RUN / "last.pt").exists()
    object_store.fetch(RUN)
    assert (RUN / "encoder/config.json").read_text() == "first encoder/config.json"
    (RUN / "last.pt").write_text("second last.pt")
    object_store.send(RUN)
    machine("one")
    object_store.fetch(RUN)
    assert (RUN / "last.pt").read_text() == "second last.pt"
    assert (RUN / "before.pt").exists()
    object_store.delete(RUN, ["best.pt", "encoder"])
    assert stored(url) == {f"{key}/config.yaml", f"{key}/last.pt"}
    (RUN / ".stored").write_text("")
    object_store.fetch(RUN)
    assert (RUN / "last.pt").read_text() == "second last.pt"


def test_a_key_that_is_a_path_to_elsewhere_is_not_fetched(
    bucket: str, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    import boto3

    monkeypatch.setenv("DICE_RAY_RUNS", bucket.replace("/runs?", "/hostile?"))
    endpoint = re.sub(r".*endpoint_override=([\d.:]+).*", r"http://\1", bucket)
    client = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1")
    for name in ("encoder/config.json", "encoder/../../../../outside"):
        client.put_object(Bucket="bucket", Key=f"hostile/sweep/trials/0001/{name}", Body=b"{}")
    assert len(client.list_objects(Bucket="bucket", Prefix="hostile/")["Contents"]) == 2
    machine("one")
    object_store.fetch(RUN)
    assert (RUN / "encoder/config.json").exists()
    assert sorted(file.name for file in Path().rglob("*") if file.is_file()) == [".stored", "config.json"]


def test_a_copy_that_fails_leaves_no_unfinished_file(
    url: str, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also finds a move in S3, which is a copy of at most 5 GB."""
    machine("one")
    RUN.mkdir(parents=True)
    (RUN / "last.pt").write_text("first")
    targets: list[str] = []

    def failing(source: str, target: str, *filesystems: Any) -> None:
        copy_files(source, target, *filesystems)
        targets.append(target)
        raise OSError("the connection was lost")

    monkeypatch.setattr(object_store, "copy_files", failing)
    with pytest.raises(OSError, match="connection was lost"):
        object_store.send(RUN)
    assert {name.rpartition("/")[2] for name in stored(url)} <= {"last.pt"}
    assert targets[0].endswith("/last.pt") == url.startswith("s3:")


def test_what_is_there_already_is_not_copied_again(url: str, machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Finds checkpoints that travel after each step: they are hundreds of megabytes."""
    machine("one")
    RUN.mkdir(parents=True)
    (RUN / "last.pt").write_text("first")
    object_store.send(RUN)
    copies: list[Any] = []
    monkeypatch.setattr(object_store, "copy_files", lambda *files: copies.append(files))
    object_store.send(RUN)
    object_store.fetch(RUN)
    assert copies == []


def test_a_run_goes_on_where_another_machine_has_stopped_and_a_third_one_reads_it(
    bucket: str, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Finds a checkpoint that is reported before it is sent, and files that reading a run needs and the store lacks."""
    monkeypatch.setenv("DICE_RAY_RUNS", bucket)
    config = resolve([Layer("test", TINY)])
    machine("one")
    for event in train_here(config, RUN):
        if isinstance(event, Evaluation):
            break  # killed: nothing is written after the report
    machine("two")
    object_store.fetch(RUN)
    again, *rest = train_here(config, RUN)
    assert again == event
    assert next(each.step for each in rest if isinstance(each, StepProgress)) == event.step + 1
    machine("three")
    assert trained.load(RUN).step > 0


def test_another_machine_drives_a_sweep_on(url: str, machine: Machine) -> None:
    """A sweep that begins anew after its driver's machine was lost, or goes on from an older ledger."""
    sweep = Path("dice_ray_runs/sweep")
    machine("one")
    object_store.fetch_driven(sweep)
    assert not sweep.exists()
    sweep.mkdir(parents=True)
    (sweep / "plan.yaml").write_text("the plan")
    object_store.send_driven(sweep, PLAN)
    (sweep / "ledger.jsonl").write_text("begin\n")
    object_store.send_driven(sweep, LEDGER)
    machine("two")
    object_store.fetch_driven(sweep)
    assert ((sweep / "plan.yaml").read_text(), (sweep / "ledger.jsonl").read_text()) == ("the plan", "begin\n")
    (sweep / "ledger.jsonl").write_text("begin\nend\n")
    object_store.send_driven(sweep, LEDGER)
    machine("one")
    (sweep / "ledger.jsonl").write_text("begin\ntorn by a ki")
    object_store.fetch_driven(sweep)
    assert (sweep / "ledger.jsonl").read_text() == "begin\nend\n"
    for ahead in ("begin\nend\nbegin\n", "of another sweep\n"):
        (sweep / "ledger.jsonl").write_text(ahead)
        with pytest.raises(RefusedError, match="choose another --name") if "other" in ahead else nullcontext():
            object_store.fetch_driven(sweep)
        assert (sweep / "ledger.jsonl").read_text() == ahead


def test_a_machine_keeps_no_checkpoints_of_runs_that_have_left_it(
    bucket: str, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Finds disks that fill with the weights of all trials, and weights that are deleted though no store has them."""
    for url, left in ((bucket, {"config.yaml", ".stored"}), (".", {"config.yaml", "best.pt", "last.pt", "before.pt"})):
        monkeypatch.setenv("DICE_RAY_RUNS", url)
        machine(f"of {left}")
        RUN.mkdir(parents=True)
        for name in ("config.yaml", "best.pt", "last.pt", "before.pt"):
            (RUN / name).touch()
        object_store.send(RUN)
        object_store.drop_checkpoints(RUN)
        assert {file.name for file in RUN.iterdir()} == left


def test_without_a_url_nothing_is_copied(tmp_path: Path) -> None:
    """Finds a run that copies itself to its own folder."""
    RUN.mkdir(parents=True)
    (RUN / "last.pt").touch()
    object_store.send(RUN)
    assert [file.name for file in RUN.iterdir()] == ["last.pt"]


@pytest.mark.ray
@pytest.mark.slow
def test_a_sweep_runs_on_machines_that_share_no_disk(tmp_path: Path, bucket: str) -> None:
    """Finds a trial that needs the driver's folder, a best trial that the driver cannot read, and a lost ledger."""
    work = tmp_path / "work"
    work.mkdir()
    path = os.pathsep.join(sys.path)

    def dice_ray(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", "from dice_ray.cli.app import main; main()", *arguments],
            cwd=work,
            env=of_driver(two.environment)
            | {"PYTHONPATH": path, "DICE_RAY_RUNS": bucket.replace("/runs?", "/sweeps?")},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    with (
        tempfile.TemporaryDirectory(prefix="dr-") as scratch,
        machines(Path(scratch)) as two,
        machine_apart(two, Path(scratch), [tmp_path], PYTHONPATH=path),
    ):
        tiny = ["--set", "data.source.synthetic.size=200", "--set", "training.epochs=2"]
        at = ["--address", two.address]
        tuned = dice_ray(
            "tune", "synthetic_pairs", *tiny, "--trials", "6", "--scheduler", "none", "--name", "search", *at
        )
        assert tuned.returncode == 0, tuned.stderr
        best = json.loads(dice_ray("runs", "search", "--json").stdout)[0]["run"]
        had = {each.name for each in (work / "dice_ray_runs/search/trials").iterdir()}
        ledger = work / "dice_ray_runs/search/ledger.jsonl"
        before = ledger.read_text()
        shutil.rmtree(work / "dice_ray_runs")  # as when the driver's machine is lost, with all that it had
        again = dice_ray(
            "tune", "synthetic_pairs", *tiny, "--trials", "6", "--scheduler", "none", "--name", "search", *at
        )
        assert again.returncode == 0, again.stderr
        assert ledger.read_text() == before
        scored = dice_ray("evaluate", best, "dev")
    assert scored.returncode == 0, scored.stderr
    assert best.replace("/", "/trials/") + "/best.pt" in stored(bucket.replace("/runs?", "/sweeps?"))
    assert len(had) == 6
