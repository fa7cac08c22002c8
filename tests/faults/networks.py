"""A network that fails between two machines of a cluster, which are namespaces of this one: both go on working."""

from __future__ import annotations

import secrets
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from tests.cluster.machines import Network, network
from tests.faults.sweeps import Kill, Sweep, survived_in_turn
from tests.faults.tries import Row, Rows, Try

PORT: Final = 6379


@contextmanager
def two_machines(shared: Path) -> Iterator[Network]:
    """A cluster of a head and another machine with a CPU each."""
    with network(["head", "other"], shared) as net:
        token = secrets.token_hex(16)
        for machine in net.machines:
            machine.environment.update({"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": token, "TMPDIR": "/tmp"})
            is_head = machine is net.machines[0]
            options = f"--head --disable-usage-stats --port {PORT}" if is_head else f"--address head:{PORT}"
            done = machine.run(f"ray start {options}")
            assert done.returncode == 0, done.stderr
        yield net


def rows_of(kill: Callable[[Network], Kill], most: int) -> Row:
    """A row whose fault disturbs the network, so many times in a sweep, whose driver runs on the head."""

    def row(folder: Path, tries: int) -> Iterator[Try]:
        while tries > 0:
            with tempfile.TemporaryDirectory(dir=folder) as shared, two_machines(Path(shared)) as net:
                # Ray tries a trial three times.
                kills = list(survived_in_turn(Path(shared), min(tries, most), kill(net), partial(_on, net), most=most))
            tries -= len(kills)
            yield from kills

    return row


def cut(seconds: float, net: Network) -> Kill:
    """The machine that is not the head is out of reach for a time; where its Ray has ended by then, it joins anew."""
    other = net.machines[1]

    def kill(sweep: Sweep, driver: subprocess.Popen[bytes]) -> float | None:
        """Seconds until its trial is taken as lost; None where it is not, or where the machine had none."""
        failures, start, noticed = _failures(sweep), time.monotonic(), None
        net.disturb(apart=[other])
        while driver.poll() is None and time.monotonic() < start + seconds:
            if noticed is None and _failures(sweep) > failures:
                noticed = time.monotonic() - start
            time.sleep(0.2)
        net.disturb()
        time.sleep(10)  # so long its raylet takes to hear that it is given up
        if not other.run("pgrep -x raylet").stdout:
            done = other.run(f"ray start --address head:{PORT}")
            assert done.returncode == 0, done.stderr
        return noticed

    return kill


def worse(loss: float, delay: float, net: Network) -> Kill:
    """The network is bad from now on."""

    def kill(sweep: Sweep, driver: subprocess.Popen[bytes]) -> None:
        net.disturb(loss=loss, delay=delay)

    return kill


def _failures(sweep: Sweep) -> int:
    return (sweep.path / "log.txt").read_text(errors="replace").count("Trial task failed")


def _on(net: Network, folder: Path, scratch: Path) -> Sweep:
    head = net.machines[0]
    options = ("--address", f"head:{PORT}")
    return Sweep(
        folder, scratch, 2, 24, options=options, environment=head.environment, prefix=tuple(head.prefix(folder))
    )


ROWS: Final[Rows] = {
    "a machine out of reach for 5 s": rows_of(partial(cut, 5), most=4),
    "a machine out of reach for 60 s": rows_of(partial(cut, 60), most=2),
    "a machine out of reach for 600 s": rows_of(partial(cut, 600), most=1),
    "5 % of the packets between machines lost": rows_of(partial(worse, 0.05, 0.0), most=1),
    "packets between machines 200 ms late": rows_of(partial(worse, 0.0, 0.2), most=1),
}
LONG: Final = frozenset({"a machine out of reach for 600 s"})
