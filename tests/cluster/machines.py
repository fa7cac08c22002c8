"""Machines on one kernel: each has its own network address, host name, processes, /tmp and home folder.

They are namespaces of Linux, joined by a switch (`tests.cluster.switch`) whose network can be disturbed. What they
share is one folder, under the same path on all, and this checkout with its Python. All of it is gone after the block.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

import psutil

REPOSITORY: Final = Path(__file__).parents[2]
HOME: Final = "/mnt"
"""Empty on each machine at first."""
NAMESPACES: Final = ("--net", "--uts", "--mount", "--ipc", "--pid")


def why_not() -> str:
    """Why no machines can be made here; empty where they can be."""
    if os.geteuid():
        return "machines of namespaces need root"
    if missing := [
        each for each in ("unshare", "setpriv", "nsenter", "ip", "mount", "hostname") if not shutil.which(each)
    ]:
        return f"machines of namespaces need {', '.join(missing)}"
    if not Path("/dev/net/tun").exists():
        return "machines of namespaces need /dev/net/tun"
    return "the checkout must not be in /tmp, which machines do not share" if REPOSITORY.parts[1] == "tmp" else ""


@dataclass(frozen=True)
class Machine:
    """A machine that runs.

    Attributes:
        name: Its host name, which the other machines resolve.
        address: On the network.
        shared: The folder that all machines see; commands begin there.
        environment: Of its commands, as a shell's after `export`.
    """

    name: str
    address: str
    shared: Path
    environment: dict[str, str]
    _init: psutil.Process

    def prefix(self, folder: Path) -> list[str]:
        """The words before a command that runs here in this folder."""
        return ["nsenter", "--target", str(self._init.pid), *NAMESPACES, "env", f"--chdir={folder}"]

    def start(self, command: str, **options: Any) -> subprocess.Popen[str]:
        """Start a line of a shell."""
        words = [*self.prefix(self.shared), "bash", "-c", command]
        return subprocess.Popen(words, env=self.environment, text=True, **options)

    def run(self, command: str, timeout: float = 300) -> subprocess.CompletedProcess[str]:
        """Run a line of a shell to its end; an `export` alone is kept for later ones."""
        words = shlex.split(command, comments=True)
        if words[0] == "export" and "&&" not in words:
            for name, _, value in (word.partition("=") for word in words[1:]):
                self.environment[name] = value
            return subprocess.CompletedProcess(command, 0, "", "")
        with self.start(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            try:
                out, err = process.communicate(timeout=timeout)
            finally:
                for each in psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []:
                    each.kill()
        return subprocess.CompletedProcess(command, process.returncode, out, err)

    def lose(self) -> None:
        """Kill all that runs here, at once."""
        self._init.kill()
        self._init.wait(30)


@dataclass(frozen=True)
class Network:
    """Machines that reach each other."""

    machines: Sequence[Machine]
    _orders: IO[str]
    _answers: IO[str]

    def disturb(self, *, loss: float = 0, delay: float = 0, apart: Sequence[Machine] = ()) -> None:
        """Lose this share of the frames, deliver each later by these seconds, and none of these machines."""
        devices = [f"tap{self.machines.index(each)}" for each in apart]
        print(json.dumps({"loss": loss, "delay": delay, "apart": devices}), file=self._orders, flush=True)
        assert self._answers.readline() == "ready\n"


@contextmanager
def tunnel(port: int, source: Machine, target: Machine) -> Iterator[None]:
    """What `ssh -L port:127.0.0.1:port target` does on the source, until the end of the block."""
    pids = [str(machine._init.pid) for machine in (source, target)]
    command = [sys.executable, "-m", "tests.cluster.tunnel", str(port), *pids]
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield
        finally:
            process.kill()


@contextmanager
def network(names: Sequence[str], shared: Path, *, host_names: bool = True) -> Iterator[Network]:
    """Machines of these names that share a folder, until the end of the block.

    Args:
        names: Their host names.
        shared: The folder.
        host_names: Whether each knows its own name by its address; otherwise it is 127.0.1.1, as Debian sets it.
    """
    taps = [f"tap{number}" for number in range(len(names))]
    with ExitStack() as stack:
        switch = stack.enter_context(
            subprocess.Popen(
                ["unshare", "--net", "nice", "-n", "-10", sys.executable, "-m", "tests.cluster.switch", *taps],
                cwd=REPOSITORY,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        )
        assert switch.stdin is not None
        assert switch.stdout is not None
        stack.callback(switch.kill)
        assert switch.stdout.readline() == "ready\n"
        addresses = {name: f"10.77.0.{number}" for number, name in enumerate(names, 1)}
        machines = []
        for device, name in zip(taps, names, strict=True):
            own = addresses if host_names else addresses | {name: "127.0.1.1"}
            init = stack.enter_context(_booted(name, own, shared))
            _connect(switch.pid, device, init.pid, addresses[name])
            machines.append(Machine(name, addresses[name], shared, _environment(), init))
        yield Network(machines, switch.stdin, switch.stdout)


@contextmanager
def _booted(name: str, addresses: Mapping[str, str], shared: Path) -> Iterator[psutil.Process]:
    """The first process of a machine, with which all others end."""
    hosts = "".join(f"{address} {each}\n" for each, address in {"localhost": "127.0.0.1", **addresses}.items())
    folder = shlex.quote(str(shared))
    steps = [
        f"mount -t tmpfs tmpfs {HOME}",
        f"mkdir {HOME}/shared && mount --bind {folder} {HOME}/shared",
        "mount -t tmpfs -o mode=1777 tmpfs /tmp",
        "mount -t tmpfs -o mode=1777 tmpfs /dev/shm",
        f"mkdir -p {folder} && mount --move {HOME}/shared {folder} && rmdir {HOME}/shared",
        f"printf %s {shlex.quote(hosts)} > /tmp/hosts && mount --bind /tmp/hosts /etc/hosts",
        # Without a server of names: one that nobody reaches would be waited for.
        "touch /tmp/resolv.conf && mount --bind /tmp/resolv.conf /etc/resolv.conf",
        f"hostname {name} && ip link set lo up",
        "trap '' CHLD && echo booted && exec sleep infinity",  # the kernel buries what the first process ignores
    ]
    boot = [
        "setpriv",
        "--pdeathsig",
        "KILL",
        "unshare",
        *NAMESPACES,
        "--fork",
        "--kill-child",
        "--mount-proc",
        "sh",
        "-ec",
        "\n".join(steps),
    ]
    with subprocess.Popen(boot, stdout=subprocess.PIPE, text=True) as outer:
        try:
            assert outer.stdout is not None
            assert outer.stdout.readline() == "booted\n", "the machine must start"
            (init,) = psutil.Process(outer.pid).children()
            yield init
        finally:
            outer.kill()


def _connect(switch: int, device: str, init: int, address: str) -> None:
    """Give a machine its end of the network; a default route, without which Ray takes the address of its host name."""
    into = ["nsenter", "--net", "--target"]
    run = [
        [*into, str(switch), "ip", "link", "set", device, "netns", str(init)],
        [*into, str(init), "ip", "link", "set", device, "name", "eth0", "up"],
        [*into, str(init), "ip", "address", "add", f"{address}/24", "dev", "eth0"],
        [*into, str(init), "ip", "route", "add", "default", "dev", "eth0"],
    ]
    for command in run:
        subprocess.run(command, check=True)


def _environment() -> dict[str, str]:
    """A shell's on a new machine, where this Python's programs are on the path, and one trial runs at once."""
    names = {name for name in os.environ if name.startswith(("DICE_RAY_TEST", "HF_", "OMP_")) or name == "DO_NOT_TRACK"}
    return {
        **{name: os.environ[name] for name in names},
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(REPOSITORY),
        "HOME": HOME,
        "RAY_OVERRIDE_RESOURCES": json.dumps({"CPU": 1}),
        "RAY_worker_niceness": "0",
    }


def wait_until(holds: Callable[[], bool], seconds: float) -> None:
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until, "it takes too long"
        time.sleep(0.2)
