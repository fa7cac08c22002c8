"""A Ray that runs from one test to the next, for tests of what runs on Ray: starting one takes as long as a trial.

Tests of the start itself, of paths relative to the driver's folder and of a Ray that is full have a Ray of their own.
"""

from __future__ import annotations

import gc
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, chdir, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from dice_ray.output import redirected
from dice_ray.run import cluster
from tests.processes import TRIAL, WORKER, titled


class KeptRay:
    """Ray with two CPUs, started when the first test asks for it."""

    def __init__(self) -> None:
        self._open = ExitStack()
        self._cluster: cluster.Cluster | None = None

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Whatever starts a Ray gets this one, until the end of the block."""
        if self._cluster is None:
            self._start()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(cluster, "started", self.started)
            yield

    def _start(self) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("DICE_RAY_VERBOSE", "1")  # no log: that of each block gets what is written in it
            folder = self._open.enter_context(tempfile.TemporaryDirectory(prefix="dr-"))
            with chdir(folder):
                self._cluster = self._open.enter_context(cluster.started(num_cpus=2, log=Path(os.devnull)))

    @contextmanager
    def started(
        self, address: str | None = None, *, num_cpus: int | None = None, log: Path
    ) -> Iterator[cluster.Cluster]:
        """In place of `cluster.started`: one CPU where no number is given, and no process of a trial afterwards."""
        assert address is None
        assert self._cluster is not None
        (node,) = self._cluster.nodes
        scratch = Path(tempfile.mkdtemp(dir=self._cluster.scratch))
        with redirected(log):
            nodes = (replace(node, cpus=num_cpus or 1),)
            yield replace(self._cluster, nodes=nodes, scratch=scratch, is_own=False)  # it outlives the block
        gc.collect()
        until = time.monotonic() + 30
        while left := titled(*TRIAL, WORKER):
            assert time.monotonic() < until, f"processes of trials must end with their sweep: {left}"
            time.sleep(0.02)

    def close(self) -> None:
        """Stop it: the next test that asks starts another one."""
        self._open.close()
        self._cluster = None


KEPT = KeptRay()
