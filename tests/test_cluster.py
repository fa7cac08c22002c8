"""Ray says nothing, writes nothing at home, listens on loopback, and goes; a Ray set otherwise is refused."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import requires
from pathlib import Path

import pytest

from dice_ray import cluster

LISTENERS = """
import os, sys
from pathlib import Path
import psutil
from dice_ray import cluster

with cluster.started(num_cpus=1, log=Path("log.txt")) as ray:
    print("Ray has words")
    os.system("echo and its children too")
    me = psutil.Process()
    tree = [me, *me.children(recursive=True)]
    sockets = [socket for process in tree for socket in process.net_connections("inet")]
    ips = {socket.laddr.ip.removeprefix("::ffff:") for socket in sockets if socket.status == "LISTEN"}
print(len(tree) > 3, sorted(ips), ray.cpus, ray.scratch.exists())
print(len(me.children(recursive=True)))
"""


def python(code: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    without_ray = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=cwd,
        env=without_ray | {"HOME": str(cwd)} | env,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_ray_comes_with_what_frees_the_groups_of_stopped_trials() -> None:
    (ray,) = [each for each in requires("dice-ray") or () if each.startswith("ray[")]
    assert {"default", "train", "tune"} <= set(ray.partition("[")[2].partition("]")[0].split(","))


@pytest.mark.ray
def test_ray_is_quiet_and_listens_on_loopback_alone(tmp_path: Path) -> None:
    done = python(LISTENERS, tmp_path)
    assert done.stderr == ""
    assert done.stdout.splitlines() == ["True ['127.0.0.1'] 1 False", "0"]
    assert (tmp_path / "log.txt").read_text().splitlines()[:2] == ["Ray has words", "and its children too"]
    assert [path.name for path in tmp_path.iterdir()] == ["log.txt"], "nothing else stands in home"


def test_a_ray_imported_with_other_settings_is_refused(tmp_path: Path) -> None:
    done = python("import ray; from dice_ray import cluster; cluster.prepare(None)", tmp_path)
    assert "RunError: Ray must be set for address 'local'" in done.stderr
    assert "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER" in done.stderr


def test_a_ray_on_loopback_joins_no_cluster(tmp_path: Path) -> None:
    code = "from dice_ray import cluster; cluster.prepare(None); import ray; print(cluster.prepare('10.0.0.1:6379'))"
    done = python(code, tmp_path)
    assert "RunError: Ray must be set for address '10.0.0.1:6379'" in done.stderr


def test_the_address_is_that_given_or_that_of_the_environment_or_local(tmp_path: Path) -> None:
    code = "import os; from dice_ray import cluster; print(cluster.prepare({!r}), os.environ.get('RAY_AUTH_MODE'))"
    assert python(code.format("a:1"), tmp_path, RAY_ADDRESS="b:2").stdout == "a:1 None\n"
    assert python(code.format(None), tmp_path, RAY_ADDRESS="b:2").stdout == "b:2 None\n"
    assert python(code.format(None), tmp_path).stdout == "local token\n"


def test_stdout_comes_back_and_its_copy_stays_open_meanwhile(tmp_path: Path) -> None:
    code = """
from pathlib import Path
from dice_ray import cluster

try:
    with cluster.quiet(Path("log.txt")) as terminal:
        print("unseen")
        print("seen", file=terminal)
        print("and partial", end="")
        raise ValueError("on its way")
except ValueError as error:
    print(error)
"""
    done = python(code, tmp_path)
    assert done.stdout == "seen\non its way\n"
    assert (tmp_path / "log.txt").read_text() == "unseen\nand partial"


def test_what_others_say_comes_to_the_terminal_where_it_is_asked_for(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for verbose, shown in (("", ""), ("1", "said\n")):
        monkeypatch.setenv("DICE_RAY_VERBOSE", verbose)
        with cluster.quiet(tmp_path / "log.txt"):
            os.write(2, b"said\n")
        assert capfd.readouterr().err == shown
    assert (tmp_path / "log.txt").read_text() == "said\n"
