"""A machine that joins while trials run is checked before the first one starts there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

import pytest

from dice_ray.config.load import Layer, resolve
from dice_ray.run import arrivals
from dice_ray.run.cluster import FOLDER, Cluster, Node
from dice_ray.tuning.ledger import Ledger
from tests.machines import machine_apart, machines, of_driver


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
    wanted = arrivals.admission(Cluster((Node(1, 0),), tmp_path, is_fixed=False, ids=frozenset({"checked"})), (config,))
    assert wanted is not None
    assert wanted.known == {"checked"}
    here = {FOLDER: str(tmp_path)}
    assert arrivals._found(wanted, here, tmp_path) == ""
    unseen = arrivals._found(wanted, here, tmp_path / "none")
    assert unseen.startswith(f"it must see {tmp_path / 'none'} under the same path: ")
    wanted.driver.versions["torch"] = "1.0"
    (tmp_path / "train.tsv").write_text("\n".join(["a\tb\ty", *lines[1:]]))
    packages, data = arrivals._found(wanted, here, tmp_path).split("; ")
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
