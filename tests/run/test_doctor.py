"""Every check fails for the machine where it must, says how to mend it, and passes on the other machines."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

import pytest

from dice_ray.run import doctor
from tests.machines import Machines, machine_apart, machines

PRESET = """
task: {sentence_pair: {positive: "1"}}
data: {source: {files: {folder: DATA, train: train.tsv, reader: {tables: {quoting: false, columns: {pair: {first: a, second: b, label: y}}}}}}}
model: {encoder: ENCODER}
training: {epochs: 1}
"""


def dice_ray(two: Machines, cwd: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from dice_ray.cli.app import main; main()", *arguments, "--address", two.address],
        cwd=cwd,
        env=os.environ | two.environment | {"PYTHONPATH": os.pathsep.join(sys.path)},
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
    for folder in (runs, data, encoder, own / "dice_ray-0.0.1.dist-info", runs / "work"):
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
    with tempfile.TemporaryDirectory(prefix="dr-") as scratch, machines(Path(scratch)) as two:
        with machine_apart(two, Path(scratch), [runs, data, encoder], num_gpus=1, PYTHONPATH=str(own)):
            two.environment["DICE_RAY_RUNS"] = str(runs)
            done = dice_ray(two, tmp_path, "doctor", str(preset), "--json")
            shown = dice_ray(two, runs / "work", "doctor")
            tuned = dice_ray(two, tmp_path, "tune", str(preset), "--set", "model.encoder=tiny", "--trials", "1")
            (own / "dice_ray").mkdir()
            (own / "dice_ray" / "__init__.py").touch()
            without = dice_ray(two, tmp_path, "doctor", "--json")
    assert done.returncode == 1, done.stderr
    failed = {check["name"]: check for check in json.loads(done.stdout) if check["problem"]}
    (apart,) = {check["machine"] for check in failed.values()}
    problems = {name: check["problem"] for name, check in failed.items()}
    print(problems, shown.stdout, tuned.stderr, without.stdout)
    assert 0
