"""docs/clusters.md, line by line, on three machines; and what a user is told who leaves a line out."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.cluster.machines import HOME, REPOSITORY, Machine, Network, network, wait_until, why_not

pytestmark = [
    pytest.mark.ray,
    pytest.mark.slow,
    pytest.mark.skipif(bool(why_not()), reason=why_not()),
    pytest.mark.timeout(1200),
]
SMALL: Final = "--set data.source.synthetic.size=100 --set training.epochs=1"
FILE: Final = f"{HOME}/.ray/auth_token"


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
        on = {"on each machine": net.machines, "on the head": [head], "on each other machine": [left]}
        for line in block("ray start --head")[:-1]:
            where = line.partition("# ")[2].partition(":")[0]
            for machine in on[where]:
                done = machine.run(line)
                assert done.returncode == 0, done.stderr
            if "copy" in line:
                for other in (left, laptop):
                    other.run(
                        f"mkdir {HOME}/.ray && install -m 600 /dev/stdin {FILE} <<< {head.run(f'cat {FILE}').stdout}"
                    )
        yield net


def refused(machine: Machine, command: str) -> str:
    """All that the stderr of a command says that ends with 1, in one line."""
    done = machine.run(command, timeout=60)
    assert done.returncode == 1, done
    return " ".join(done.stderr.split())


def test_the_cluster_of_the_page_runs_a_sweep_on_both_machines(cluster: Network) -> None:
    """Finds a line that does not work, a token that others may read, and a cluster that reports to Ray's makers."""
    head, left, _ = cluster.machines
    assert head.run(f"stat -c %a {FILE}").stdout == "600\n"
    assert "Usage stats collection is enabled" not in head.run("cat /tmp/ray/session_latest/logs/*").stdout
    (doctor, _) = block("dice-ray doctor")
    done = left.run(f"{doctor.partition('#')[0]} --json")
    checks = json.loads(done.stdout)
    failed = {(each["name"], each["machine"]): each["problem"] for each in checks if each["problem"]}
    assert failed.keys() == {("host name", head.address), ("host name", left.address)}, failed
    assert (
        "its host name head must stand for an address that the others reach, and stands for 127.0.1.1"
        in failed["host name", head.address]
    )
    tune = block("ray start --head")[-1].partition("#")[0].replace("mrpc", "synthetic_pairs").replace("256", "4")
    done = left.run(f"{tune} {SMALL} --name sweep")
    assert done.returncode == 0, done.stderr
    ledger = [
        json.loads(line) for line in (left.shared / "dice_ray_runs" / "sweep" / "ledger.jsonl").read_text().splitlines()
    ]
    assert len(ledger) == 8


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
    wait_until(lambda: left.run("dice-ray doctor synthetic_pairs --address head:6379").returncode == 0, 120)


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
    done = left.run(train)
    assert done.returncode == 0, done.stderr
