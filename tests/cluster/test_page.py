"""docs/clusters.md, line by line, on three machines; and what a user is told who leaves a line out."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from dice_ray.tuning.ledger import ledger_in
from tests.cluster.machines import HOME, REPOSITORY, Machine, Network, network, tunnel, wait_until, why_not
from tests.object_store import CREDENTIALS

pytestmark = [
    pytest.mark.ray,
    pytest.mark.slow,
    pytest.mark.skipif(bool(why_not()), reason=why_not()),
    pytest.mark.timeout(1200),
]
SMALL: Final = "--set data.source.synthetic.size=100 --set training.epochs=1"
FILE: Final = f"{HOME}/.ray/auth_token"
STORE: Final = "s3://bucket/runs?endpoint_override=head:9000&scheme=http&region=us-east-1"
SPACE: Final = """
def rates(trial):
    trial.suggest_float("training.lr", 1e-4, 1e-2, log=True)
"""
BUCKET: Final = f"""
from pyarrow.fs import FileSystem
FileSystem.from_uri("{STORE.replace("/runs", "/")}&allow_bucket_creation=true")[0].create_dir("bucket")
"""


def block(beginning: str) -> list[str]:
    """The lines of the page's block that has a line which begins like this."""
    blocks = re.findall(
        r"^```bash\n(.*?)^```$", (REPOSITORY / "docs" / "clusters.md").read_text(), re.DOTALL | re.MULTILINE
    )
    (found,) = (lines for lines in map(str.splitlines, blocks) if any(line.startswith(beginning) for line in lines))
    return [line.replace("HOST", "head") for line in found if not line.startswith("#")]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Network]:
    """A cluster of two machines as the page says, and a third one that has the token alone: a laptop."""
    with (
        tempfile.TemporaryDirectory(prefix="dr-") as shared,
        network(["head", "left", "laptop"], Path(shared), host_names=False) as net,
    ):
        head, left, laptop = net.machines
        for machine in net.machines:
            machine.environment.update(CREDENTIALS)
        on = {"on each machine": net.machines, "on the head": [head], "on each other machine": [left]}
        for line in block("ray start --head")[:-1]:
            where = line.partition("# ")[2].partition(":")[0]
            for machine in on[where]:
                done(machine, line)
            if "copy" in line:
                for other in (left, laptop):
                    other.run(
                        f"mkdir {HOME}/.ray && install -m 600 /dev/stdin {FILE} <<< {head.run(f'cat {FILE}').stdout}"
                    )
        yield net


def small(line: str, trials: int = 0) -> str:
    """A line of the page on data of a few seconds, with so many trials."""
    return line.partition("  #")[0].replace("mrpc", f"synthetic_pairs {SMALL}").replace("256", str(trials))


def done(machine: Machine, line: str) -> str:
    """What a line prints, which must end well."""
    ended = machine.run(line)
    assert ended.returncode == 0, (line, ended.stdout, ended.stderr)
    return ended.stdout


def refused(machine: Machine, command: str) -> str:
    """All that the stderr of a command says that ends with 1, in one line."""
    ended = machine.run(command, timeout=120)
    assert ended.returncode == 1, ended
    return " ".join(ended.stderr.split())


def test_the_cluster_of_the_page_runs_a_sweep_on_both_machines(cluster: Network) -> None:
    """Finds a line that does not work, a token that others may read, and a cluster that reports to Ray's makers."""
    head, left, _ = cluster.machines
    assert head.run(f"stat -c %a {FILE}").stdout == "600\n"
    assert "Usage stats collection is enabled" not in head.run("cat /tmp/ray/session_latest/logs/*").stdout
    (doctor, _) = block("dice-ray doctor")
    checks = json.loads(left.run(f"{small(doctor)} --json").stdout)
    failed = {(each["name"], each["machine"]): each["problem"] for each in checks if each["problem"]}
    assert failed.keys() == {("host name", head.address), ("host name", left.address)}, failed
    assert (
        "its host name head must stand for an address that the others reach, and stands for 127.0.1.1"
        in failed["host name", head.address]
    )
    done(left, f"{small(block('ray start --head')[-1], 4)} --name sweep")
    assert len(ledger_in(left.shared / "dice_ray_runs" / "sweep").outcomes) == 4


def test_machines_that_share_no_disk_drive_a_sweep_in_turn(cluster: Network) -> None:
    """Finds a sweep that another machine cannot go on with, as its files are on the disk of the one that drove it."""
    head, left, _ = cluster.machines
    export, tune = block("export DICE_RAY_RUNS=s3://")
    assert export.startswith("export DICE_RAY_RUNS=s3://BUCKET/runs ")
    alone = f"export {shlex.quote(f'DICE_RAY_RUNS={STORE}')} && mkdir -p ~/alone && cd ~/alone"
    with head.start("exec python -m moto.server -H 0.0.0.0 -p 9000", stderr=subprocess.DEVNULL) as server:
        try:
            wait_until(lambda: not head.run(f"python -c {shlex.quote(BUCKET)}").returncode, 120)
            done(left, f"{alone} && {small(tune, 2)}")
            done(head, f"{alone} && dice-ray resume search --trials 1 --address head:6379")
        finally:
            server.kill()
    assert head.run(f"grep -c '\"end\"' {HOME}/alone/dice_ray_runs/search/ledger.jsonl").stdout == "3\n"
    assert not list(left.shared.glob("**/search"))


def test_a_laptop_submits_a_job_through_a_tunnel(cluster: Network) -> None:
    """Finds a line for jobs that works on the machines of the cluster alone, or asks for what a laptop has not."""
    head, _, laptop = cluster.machines
    export, submit, *jobs = block("export RAY_AUTH_MODE=token RAY_API")
    runs = laptop.shared / "runs"
    export = small(export).replace("/shared/runs", str(runs)).replace("http://head:8265", "http://127.0.0.1:8265")
    preset = "{task: sentence_pair, data: {source: {synthetic: {size: 100}}}, training: {epochs: 1}}"
    for file, content in {"mine.yaml": preset, "my_space.py": SPACE}.items():
        done(laptop, f"mkdir -p ~/project && cat > ~/project/{file} <<< {shlex.quote(content)}")
    with tunnel(8265, laptop, head):
        done(laptop, f"cd ~/project && {export} && {small(submit, 2)}")
        for line in jobs:
            done(laptop, f"{export} && {small(line)}")
    assert len(ledger_in(runs / "search").outcomes) == 2


def test_a_driver_outside_the_cluster_is_told_what_to_do(cluster: Network) -> None:
    """Finds a driver that waits a minute and says nothing: one from a laptop, and one without the right token."""
    laptop = cluster.machines[2]
    for command in ("doctor", f"tune synthetic_pairs {SMALL} --trials 2 --name outside"):
        said = refused(laptop, f"dice-ray {command} --address head:6379")
        assert said == (
            "dice-ray: this machine must be one of the Ray cluster at head:6379, and none of its raylets runs here: "
            "`ray start --address=head:6379` first, or give the command to the cluster by `dice-ray submit`"
        )
    for wrong in ("RAY_AUTH_TOKEN=" + "0" * 64, "RAY_AUTH_MODE=disabled", f"RAY_AUTH_TOKEN_PATH={HOME}/none"):
        said = refused(laptop, f"env {wrong} dice-ray doctor --address head:6379")
        assert said.startswith("dice-ray: the Ray cluster at head:6379 must be given its token"), (wrong, said)


def test_a_machine_whose_raylet_was_restarted_is_one_of_the_cluster(cluster: Network) -> None:
    """Finds a driver that joins at the socket of the raylet that is dead."""
    left = cluster.machines[1]
    left.run("kill -9 $(pgrep -x raylet)")
    said = refused(left, "dice-ray doctor --address head:6379")
    assert "none of its raylets runs here" in said
    assert left.run("ray start --address head:6379").returncode == 0
    # For about 13 s Ray takes the dead one for alive, and doctor says that it does not answer.
    (_, doctor) = block("dice-ray doctor")
    wait_until(lambda: left.run(small(doctor)).returncode == 0, 120)


def test_workers_on_two_machines_find_each_other_by_the_interface_of_the_page(cluster: Network) -> None:
    """Finds a page whose variable does not help, and a check that lets workers start which fail."""
    head, left, _ = cluster.machines
    train = f"env RAY_ADDRESS=head:6379 dice-ray train synthetic_pairs {SMALL} --workers 2 --name wide"
    said = refused(left, train)
    assert said.count("its host name") == 2, said
    for machine in (left, head):
        machine.environment["GLOO_SOCKET_IFNAME"] = "eth0"
        machine.run("kill -9 $(pgrep -f 'raylet|gcs_server|dashboard|monitor|ray::')")
    assert head.run("ray start --head --disable-usage-stats").returncode == 0
    assert left.run("ray start --address head:6379").returncode == 0
    done(left, train)
    export, elastic = block("dice-ray train mrpc --workers 4")
    done(left, f"{small(export)} && {small(elastic)}")
