"""Every check fails for the machine where it must, says how to mend it, and passes on the other machines."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from dice_ray.config.load import Layer, resolve
from dice_ray.run import doctor
from dice_ray.run.cluster import FOLDER, Cluster, Node
from dice_ray.tuning.ledger import Ledger
from tests.machines import Machines, machine_apart, machines, of_driver
from tests.models.hub_server import TOKEN, hub_server

PRESET = """
task: {sentence_pair: {positive: "1"}}
data:
  source:
    files:
      folder: DATA
      train: train.tsv
      reader: {tables: {quoting: false, columns: {pair: {first: a, second: b, label: y}}}}
model: {encoder: ENCODER}
training: {epochs: 1}
"""


def dice_ray(two: Machines, cwd: Path, runs: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from dice_ray.cli.app import main; main()", *arguments, "--address", two.address],
        cwd=cwd,
        env=of_driver(two.environment) | {"PYTHONPATH": os.pathsep.join(sys.path), "DICE_RAY_RUNS": str(runs)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.ray
@pytest.mark.slow
def test_a_machine_unlike_the_others_is_named_by_every_check_and_no_sweep_starts(tmp_path: Path) -> None:
    """A machine with other disks, clock and packages: each check that is left out lets a sweep start that fails."""
    runs, data, encoder, own = (tmp_path / name for name in ("runs", "data", "encoder", "own"))
    for folder in (runs, data, encoder, own / "dice_ray-0.0.1.dist-info"):
        folder.mkdir(parents=True)
    lines = [f"a{n}\tb{n}\t{n % 2}" for n in range(200)]
    (data / "train.tsv").write_text("\n".join(["a\tb\ty", *lines]))
    (encoder / "config.json").write_text("{}")
    preset = tmp_path / "mine.yaml"
    preset.write_text(PRESET.replace("DATA", str(data)).replace("ENCODER", str(encoder)))
    (own / "dice_ray-0.0.1.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: dice-ray\nVersion: 0.0.1\n"
    )
    (own / "sitecustomize.py").write_text("import time; true = time.time; time.time = lambda: true() + 3600")
    path = os.pathsep.join([str(own), *sys.path])
    with (
        tempfile.TemporaryDirectory(prefix="dr-") as scratch,
        machines(Path(scratch)) as two,
        machine_apart(two, Path(scratch), [runs, data, encoder], num_gpus=1, PYTHONPATH=path),
    ):
        done = dice_ray(two, tmp_path, runs, "doctor", str(preset), "--json")
        tuned = dice_ray(two, tmp_path, runs, "tune", str(preset), "--set", "model.encoder=tiny", "--name", "search")
        (own / "dice_ray").mkdir()
        (own / "dice_ray" / "__init__.py").touch()
        without = dice_ray(two, tmp_path, runs, "doctor")
    assert done.returncode == 1, done.stderr
    checks = json.loads(done.stdout)
    assert Counter(check["name"] for check in checks)["data mine"] == 3
    failed = {check["name"]: check for check in checks if check["problem"]}
    (apart,) = {check["machine"] for check in failed.values()}
    problems = {name: check["problem"] for name, check in failed.items()}
    expected = {
        "versions": f"it must have the driver's versions: install dice-ray=={version('dice-ray')}, not 0.0.1",
        "clock": "its clock is at least 3[56].. s ahead of the driver's: set all clocks by NTP",
        "folders": f"it must see what the driver writes to {runs}: mount one disk under the same .*",
        "data mine": "it must have the data mine, which the driver does not send: .*train.tsv.*",
        f"encoder {encoder}": "its encoder .* must be that of the driver, and differs: copy the driver's files there",
    }
    if version("torch").endswith("+cpu"):
        expected["resources"] = "it has GPUs, and torch .* is a build without CUDA: install .*"
    assert problems.keys() == expected.keys(), problems
    assert [name for name, text in expected.items() if not re.fullmatch(text, problems[name])] == [], problems
    assert tuned.returncode == 1, tuned.stdout
    assert tuned.stderr.count(f"{apart}: it") == 5
    assert not list((runs / "search").glob("ledger.jsonl")) or not (runs / "search" / "ledger.jsonl").read_text()
    assert without.returncode == 1
    answer = "it must have dice_ray .* installed for Ray's Python, and answer: .*No module named 'dice_ray.run'"
    assert re.search(answer, " ".join(without.stdout.split())), without.stdout
    assert "1 problem" in without.stdout


def test_what_one_machine_alone_cannot_show(tmp_path: Path) -> None:
    """Finds a check that ignores a folder which the driver does not see again, a full disk, or a missing cwd."""
    shared = doctor._Shared(str(tmp_path), "token")
    answer = doctor._answer("node", {FOLDER: str(tmp_path / "gone")}, shared, ())
    assert answer.unseen.startswith(f"it must see the working directory {tmp_path / 'gone'} under the same path")
    answer.unseen = ""
    assert "the driver must see" in doctor._folders(answer, shared, "node")[2]
    shared.write("node")
    assert doctor._folders(answer, shared, "node") == ("folders", f"{tmp_path} read and written", "")
    disk = doctor._disk(doctor.Needs(tmp_path, disk=2**60))
    assert re.fullmatch(f"{tmp_path} must have 1073741824.00 GiB free for checkpoints, got .*", disk.problem)
    assert not doctor._disk(doctor.Needs(tmp_path, disk=1)).problem


def test_a_folder_that_cannot_be_written_is_said_so(tmp_path: Path) -> None:
    """Finds an error of the file system that ends the task in place of the check."""
    with doctor._shared(tmp_path) as shared:
        (tmp_path / f".doctor-{shared.token[:8]}" / "node").mkdir()  # in the way, as root may write anywhere
        answer = doctor._answer("node", {FOLDER: str(Path.cwd())}, shared, ())
    assert answer.unseen.startswith(f"it must be able to write to {tmp_path}: ")
    assert list(tmp_path.iterdir()) == []


ENCODERS = """
import json, sys
from dice_ray.config.load import Layer, resolve
from dice_ray.run import doctor

answer = doctor._MachineFacts({}, 0.0)
for encoder in sys.argv[1:]:
    layers = [Layer("", {"task": {"sentence_pair": {"positive": "1"}}, "data": {}, "model": {"encoder": encoder}})]
    doctor._find_contents(resolve(layers), answer)
print(json.dumps([answer.contents, answer.problems]))
"""


def test_a_machine_without_access_to_an_encoder_of_the_hub_says_so(tmp_path: Path) -> None:
    """Finds a check that asks the hub whether it is there, and not for the encoder: a cluster has its own tokens."""
    with hub_server() as hub:
        hub.repositories |= {"me/public": "public", "me/private": "private"}
        hub.files |= {(name, "config.json"): b'{"model_type": "bert"}' for name in hub.repositories}

        def asked(**token: str) -> list[dict[str, Any]]:
            own = {"HF_ENDPOINT": hub.endpoint, "HF_HUB_OFFLINE": "0", "HF_HOME": str(tmp_path / "home"), **token}
            done = subprocess.run(
                [sys.executable, "-c", ENCODERS, *hub.repositories, "me/none"],
                env=os.environ | own | {"PYTHONPATH": os.pathsep.join(sys.path)},
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stderr
            found: list[dict[str, Any]] = json.loads(done.stdout)
            return found

        contents, problems = asked()
        with_token, missing = asked(HF_TOKEN=TOKEN)
    there = ["on the hub, with access", "c" * 40]
    assert {name: where for name, where in contents.items() if name.startswith("encoder")} == {
        "encoder me/public": there
    }
    assert problems.keys() == {"encoder me/private", "encoder me/none"}
    assert "or a hub id that this machine can reach, got 'me/private': " in problems["encoder me/private"]
    assert with_token["encoder me/private"] == there
    assert missing.keys() == {"encoder me/none"}


def test_what_a_machine_lacks_is_said(tmp_path: Path) -> None:
    """Finds a machine that trains on other data, or fails for a folder that it does not see, with a strange error."""
    lines = [f"a{number}\tb{number}\t{number % 2}" for number in range(200)]
    (tmp_path / "train.tsv").write_text("\n".join(["a\tb\ty", *lines]))
    columns = {"pair": {"first": "a", "second": "b", "label": "y"}}
    files = {
        "folder": str(tmp_path),
        "train": "train.tsv",
        "reader": {"tables": {"quoting": False, "columns": columns}},
    }
    config = resolve([Layer("", {"task": {"sentence_pair": {"positive": "1"}}, "data": {"source": {"files": files}}})])
    # A machine that joins between the check and the first trial is not among the checked ones.
    wanted = doctor.admission(Cluster((Node(1, 0),), tmp_path, is_fixed=False, ids=frozenset({"checked"})), (config,))
    assert wanted is not None
    assert wanted.known == {"checked"}
    here = {FOLDER: str(tmp_path)}
    assert doctor._found(wanted, here, tmp_path) == ""
    unseen = doctor._found(wanted, here, tmp_path / "none")
    assert unseen.startswith(f"it must see {tmp_path / 'none'} under the same path: ")
    wanted.driver.versions["torch"] = "1.0"
    (tmp_path / "train.tsv").write_text("\n".join(["a\tb\ty", *lines[1:]]))
    packages, data = doctor._found(wanted, here, tmp_path).split("; ")
    assert packages.startswith("it must have the driver's versions: install torch==1.0, not ")
    assert data == f"its data {tmp_path.name} must be that of the driver, and differs: copy the driver's files there"


@pytest.mark.ray
@pytest.mark.slow
def test_a_machine_that_is_not_ready_ends_the_sweep_and_no_trial_fails(tmp_path: Path) -> None:
    """Finds a machine that fails one trial after the other, each in a moment, and so all that are left."""
    own = tmp_path / "own"
    (own / "dice_ray-0.0.1.dist-info").mkdir(parents=True)
    (own / "dice_ray-0.0.1.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: dice-ray\nVersion: 0.0.1\n"
    )
    path = os.pathsep.join(sys.path)
    ledger = tmp_path / "dice_ray_runs" / "search" / "ledger.jsonl"
    words = ["tune", "synthetic_pairs", "--trials", "60", "--scheduler", "none", "--name", "search"]
    words += ["--set", "training.epochs=8"]
    with tempfile.TemporaryDirectory(prefix="dr-") as scratch, machines(Path(scratch)) as two:
        driver = subprocess.Popen(
            [sys.executable, "-c", "from dice_ray.cli.app import main; main()", *words, "--address", two.address],
            env=of_driver(two.environment) | {"PYTHONPATH": path},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            until = time.monotonic() + 120
            while not (ledger.exists() and ledger.read_text()):
                assert driver.poll() is None
                assert time.monotonic() < until, "a trial must start"
                time.sleep(0.2)
            with machine_apart(two, Path(scratch), [], PYTHONPATH=os.pathsep.join([str(own), path])):
                _, error = driver.communicate(timeout=200)
        finally:
            driver.kill()
    assert driver.returncode == 1
    expected = (
        r"a machine that joins the cluster must be ready for trials: .*: it must have the driver's versions: install "
        rf"dice-ray=={version('dice-ray')}, not 0.0.1 .*`dice-ray resume search`"
    )
    assert re.search(expected, " ".join(error.split())), error
    history = Ledger(ledger)
    assert history.unfinished
    assert "failed" not in {outcome.state for outcome in history.outcomes.values()}
