"""Ray says nothing, writes nothing at home, listens on loopback, and goes; a Ray set otherwise is refused."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import requires
from pathlib import Path

import pytest

from dice_ray import files
from dice_ray.errors import InputError
from dice_ray.run import cluster
from tests.machines import machines

LISTENERS = """
import os, stat, sys
from pathlib import Path

if "first" in sys.argv:
    import ray, ray.tune, ray.train
import psutil
from dice_ray.run import cluster

with cluster.started(num_cpus=1, log=Path("log.txt")) as ray:
    print("Ray has words")
    os.system("echo and its children too")
    print(oct(stat.S_IMODE(ray.scratch.stat().st_mode)), [each.name for each in ray.scratch.iterdir()])
    me = psutil.Process()
    tree = [me, *me.children(recursive=True)]
    sockets = [socket for process in tree for socket in process.net_connections("inet")]
    ips = {socket.laddr.ip.removeprefix("::ffff:") for socket in sockets if socket.status == "LISTEN"}
print(len(tree) > 3, sorted(ips), sum(node.cpus for node in ray.nodes), ray.scratch.exists())
print(len(me.children(recursive=True)))
"""


def python(code: str, cwd: Path, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    without_ray = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
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
@pytest.mark.parametrize("imported", ["first", "later"])
def test_ray_is_quiet_and_listens_on_loopback_alone(
    tmp_path: Path, imported: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Also where a notebook has imported it first, and it has read its settings by then; and with a long `$TMPDIR`."""
    done = python(LISTENERS, tmp_path, imported, TMPDIR=str(tmp_path_factory.mktemp("longer-than-a-socket-may-be")))
    assert done.stderr == ""
    assert done.stdout.splitlines() == ["True ['127.0.0.1'] 1 False", "0"]
    log = (tmp_path / "log.txt").read_text().splitlines()
    assert log[:2] == ["Ray has words", "and its children too"]
    assert "0o700 ['lock', 'ray']" in log, "Ray's sockets lie where nobody else can replace them"
    assert [path.name for path in tmp_path.iterdir()] == ["log.txt"], "nothing else stands in home"


def test_what_killed_drivers_left_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And neither what a living one holds, nor what may be a new one's, nor what another user leads us to."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(cluster, "_SOCKET", "")
    own = tmp_path / "own"
    for folder in (own, *(tmp_path / f"dice_ray-{name}" for name in ("dead", "open", "alive", "new"))):
        folder.mkdir(mode=0o700)
        (folder / "lock").write_text("kept")
        os.utime(folder, (0, 0))
    os.utime(tmp_path / "dice_ray-new")
    (tmp_path / "dice_ray-open").chmod(0o777)
    (tmp_path / "dice_ray-link").symlink_to(own)
    with files.lock(tmp_path / "dice_ray-alive"), cluster._scratch() as scratch:
        left = {path.name for path in tmp_path.iterdir()}
    assert left == {"own", scratch.name, *(f"dice_ray-{name}" for name in ("alive", "link", "new", "open"))}
    assert (own / "lock").read_text() == "kept"


def test_a_ray_on_loopback_joins_no_cluster(tmp_path: Path) -> None:
    code = (
        "from dice_ray.run import cluster; cluster.prepare(None); import ray; print(cluster.prepare('10.0.0.1:6379'))"
    )
    done = python(code, tmp_path)
    assert "RunError: Ray was restricted to this machine when this process first used it, and cannot" in done.stderr


def test_the_address_is_that_given_or_that_of_the_environment_or_local(tmp_path: Path) -> None:
    code = "import os; from dice_ray.run import cluster; print(cluster.prepare({!r}), os.environ.get('RAY_AUTH_MODE'))"
    with listening() as one, listening() as other:
        assert python(code.format(one), tmp_path, RAY_ADDRESS=other).stdout == f"{one} None\n"
        assert python(code.format(None), tmp_path, RAY_ADDRESS=other).stdout == f"{other} None\n"
    assert python(code.format("auto"), tmp_path, RAY_ADDRESS=other).stdout == "auto None\n"
    assert python(code.format(None), tmp_path).stdout == "local token\n"
    assert f"must answer at {other}, and nothing does" in python(code.format(None), tmp_path, RAY_ADDRESS=other).stderr


def test_what_asks_for_a_dashboard_is_told_at_once_that_there_is_none(tmp_path: Path) -> None:
    asks = "from dice_ray.run import cluster; cluster.prepare(None); from ray.util import state; state.get_actor('00')"
    assert "Module: no_dashboard does not exist" in python(asks, tmp_path).stderr


@contextmanager
def listening() -> Iterator[str]:
    """An address where something answers, until the end of the block."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


def test_a_head_that_listens_on_loopback_alone_is_refused(tmp_path: Path) -> None:
    """Ray waited for it for ten minutes, without a word."""
    code = "from dice_ray.run import cluster; cluster._check_member({!r})"
    with listening() as address:
        done = python(code.format(address), tmp_path)
    assert f"which Ray uses in place of {address}, and nothing does" in done.stderr
    assert python(code.format("auto"), tmp_path).stderr == ""


@pytest.mark.parametrize("address", ["nowhere", "127.0.0.1", "127.0.0.1:port", "ray://a:1", "a:99999"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(InputError, match=f"must be HOST:PORT .* got '{re.escape(address)}'"):
        cluster._check_address(address)


@pytest.mark.ray
def test_a_ray_that_does_not_start_is_told_in_one_line(tmp_path: Path) -> None:
    code = """
from pathlib import Path
from dice_ray.run import cluster
from dice_ray.errors import RunError
try:
    with cluster.started(num_cpus=-1, log=Path("log.txt")):
        pass
except RunError as error:
    print(error)
"""
    done = python(code, tmp_path)
    assert done.stdout.startswith("Ray must start at local: ")
    assert done.stdout.count("\n") == 1


JOINED = """
import os, sys
from pathlib import Path
from dice_ray.run import cluster
from dice_ray.errors import RunError

def stand(surroundings):
    cluster.enter(surroundings)
    return os.getcwd(), os.environ["DICE_RAY_DATA"], os.environ.get("HF_TOKEN")

for num_cpus in (2, 99):
    try:
        with cluster.started(sys.argv[1], num_cpus=num_cpus, log=Path("log.txt")) as joined:
            import ray

            found = ray.get(ray.remote(stand).remote(cluster.surroundings()))
        print(len(joined.nodes), *found)
    except RunError as error:
        print(error)
"""


@pytest.mark.ray
def test_processes_on_a_cluster_stand_where_the_driver_does(tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="dr-") as scratch, machines(Path(scratch)) as two:
        given = {**two.environment, "DICE_RAY_DATA": "data here", "HF_TOKEN": "a secret"}
        done = python(JOINED, tmp_path, two.address, **given)
    joined, small = done.stdout.splitlines()
    assert joined == f"2 {tmp_path} data here None"
    assert small.startswith("the Ray that is used must have 99 CPUs, and has ")


RUNNING = """
import os, sys
from pathlib import Path

import ray

ray.init(include_dashboard=False, num_cpus=2, logging_level="error", log_to_driver=False)
os.mkdir("notebook")
os.chdir("notebook")
os.environ["DICE_RAY_RUNS"] = str(Path("runs").absolute())
from dice_ray import errors, tune
from dice_ray.run import cluster

Path("mine.py").write_text(
    "import os\\n"
    "from dice_ray.losses.cross_entropy import CrossEntropyLoss\\n"
    "def rate(trial): trial.suggest_float('training.lr', 1e-3, 2e-3)\\n"
    "def build(facts):\\n"
    "    assert os.environ['DICE_RAY_RUNS'] == os.path.abspath('runs')\\n"
    "    return CrossEntropyLoss(facts.link)\\n"
)
tiny = {"data.source.synthetic.size": 200, "training.epochs": 1, "loss.custom.target": "mine:build"}
result = tune("synthetic_pairs", tiny, space="mine.py:rate", trials=1, name="joined")
print(result.is_finished, ray.is_initialized(), ray.get(ray.remote(lambda: os.getcwd()).remote()) == os.getcwd())
for address, num_cpus in (("10.0.0.1:6379", None), (None, 3)):
    try:
        with cluster.started(address, num_cpus=num_cpus, log=Path("log.txt")):
            pass
    except errors.RunError as error:
        print(error)
ray.shutdown()
"""


@pytest.mark.ray
@pytest.mark.slow
def test_a_ray_that_runs_in_this_process_is_used_and_left_running(tmp_path: Path) -> None:
    """Its processes stand in another folder than the driver, and know no variable that was set since."""
    done = python(RUNNING, tmp_path, PYTHONPATH=os.pathsep.join(sys.path))
    assert done.returncode == 0, done.stderr
    used, other, small = done.stdout.splitlines()
    assert used == "True True False"
    assert other.startswith("Ray runs in this process already, and is used: call ray.shutdown() to use address '10.0")
    assert small == "the Ray that is used must have 3 CPUs, and has 2: lower launch.workers or launch.threads"
