"""What a trial demands: how many fit at once, how many share a GPU, and what fits nowhere."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from dice_ray.config.load import Layer, resolve, values_layer
from dice_ray.errors import ConfigError, RunError
from dice_ray.run.cluster import _LOOPBACK, Node
from dice_ray.run.rehearsal import Rehearsal
from dice_ray.tuning import estimate
from dice_ray.tuning.estimate import measured_share
from dice_ray.tuning.resources import _CONTEXT, _MARGIN, Demand, _share_of_gpu, demand, share_of, shared
from dice_ray.tuning.sweep import SweepPlan
from tests.machines import of_driver
from tests.tuning.test_estimate import REHEARSAL, SPACE

ONE_WORKER = Demand(4, 0, 1, 1)
TWO_ON_GPUS = Demand(1, 1, 2, 2)
TWO_TO_FOUR = Demand(2, 0, 4, 2)


def test_a_trial_demands_what_it_is_launched_with(layers: tuple[Layer, ...]) -> None:
    assert demand(resolve(layers), 1) == Demand(1)
    wide = {"launch.workers": 2, "launch.threads": 3, "launch.gpus": 1}
    found = demand(resolve([*layers, values_layer("--set", wide)]), 8)
    assert found == Demand(3, 1, 2, 2)
    elastic = resolve([*layers, values_layer("--set", {"launch.workers": 4, "launch.min_workers": 2})])
    assert demand(elastic, 2) == TWO_TO_FOUR
    half = resolve([*layers, values_layer("--set", {"launch.gpus": 0.5})])
    assert demand(half, 1) == Demand(1, 0.5)
    alone = resolve([*layers, values_layer("--set", {"launch.how": "ray_train"})])
    assert demand(alone, 4) == ONE_WORKER


@pytest.mark.parametrize(
    ("needs", "nodes", "slots"),
    [
        (Demand(1), [Node(2, 0)], 2),
        (ONE_WORKER, [Node(10, 0)], 2),
        (Demand(3, 0, 2, 2), [Node(4, 0), Node(4, 0), Node(4, 0)], 1),  # none spans two machines
        (TWO_TO_FOUR, [Node(16, 0)], 2),
        (TWO_TO_FOUR, [Node(4, 0)], 1),  # with fewer workers than it wants
        (Demand(1, 1), [Node(10, 3)], 3),
        (Demand(1, 0.1), [Node(40, 1)], 10),
        (Demand(1, 0.4), [Node(40, 2)], 4),  # none lies across two
        (Demand(1, 0.5), [Node(1, 2), Node(9, 0)], 1),
        (TWO_ON_GPUS, [Node(10, 3)], 1),
        (Demand(4), [Node(4, 0)], 1),  # all there is
        (Demand(2), [Node(1, 0), Node(4, 0)], 2),
        (Demand(2), [Node(3, 0), Node(3, 0)], 2),  # none spans two machines
        (TWO_ON_GPUS, [Node(4, 1), Node(4, 1)], 1),  # but workers may
    ],
)
def test_trials_fit_by_their_demand(needs: Demand, nodes: list[Node], slots: int) -> None:
    assert needs.slots(nodes) == slots


@pytest.mark.parametrize(
    ("needs", "nodes", "on_fixed", "on_growing"),
    [
        (Demand(1), [Node(1, 0), Node(1, 0)], 2, 3),
        (Demand(1), [Node(16, 0)], 16, 20),
        (Demand(1, 1), [Node(8, 0), Node(8, 4)], 4, 5),
        (TWO_ON_GPUS, [Node(10, 4)], 2, 2),  # what waits would take the CPUs that the workers of others need
        (Demand(4), [Node(1, 0)], 1, 1),  # all of its machines were lost, and the next one is asked for
    ],
)
def test_a_quarter_more_trials_wait_where_machines_may_come(
    needs: Demand, nodes: list[Node], on_fixed: int, on_growing: int
) -> None:
    """Finds a sampler asked for the whole queue at once, and a cluster that is never asked to grow."""
    assert needs.most_at_once(nodes, is_fixed=True) == on_fixed
    assert needs.most_at_once(nodes, is_fixed=False) == on_growing


@pytest.mark.parametrize(
    ("values", "nodes", "num_trials", "expected"),
    [
        ({}, [Node(16, 0)], 64, Demand(1)),
        ({}, [Node(16, 0)], 3, Demand(5)),
        ({}, [Node(16, 0)], 1, Demand(16)),
        ({}, [Node(16, 0), Node(8, 0)], 3, Demand(8)),
        ({"launch.gpus": 1}, [Node(16, 2)], 64, Demand(8, 1)),
        ({"launch.gpus": 0.25}, [Node(16, 1)], 64, Demand(4, 0.25)),
        ({"launch.workers": 2}, [Node(9, 0)], 1, Demand(4, 0, 2, 2)),
        ({"launch.threads": 3}, [Node(16, 0)], 1, Demand(3)),
    ],
)
def test_trials_share_the_cpus_that_would_be_idle(
    values: dict[str, object], nodes: list[Node], num_trials: int, expected: Demand, layers: tuple[Layer, ...]
) -> None:
    assert shared(resolve([*layers, values_layer("--set", values)]), nodes, num_trials) == expected


@pytest.mark.parametrize(
    ("needs", "nodes", "said"),
    [
        (TWO_ON_GPUS, [Node(10, 1)], r"each trial needs 2 GPUs \(launch.workers x launch.gpus\), got 1 in all"),
        (ONE_WORKER, [Node(3, 0)], r"each trial needs 4 CPUs \(launch.workers x launch.threads\), got 3 in all"),
        (TWO_TO_FOUR, [Node(3, 0)], r"each trial needs 4 CPUs \(launch.min_workers x launch.threads\), got 3 in all"),
        (
            Demand(3, 0, 2, 2),
            [Node(4, 0), Node(2, 0)],
            r"each process needs 3 CPUs .* needs 2 of them, and there is room for 1: 4 CPUs and 0 GPUs; 2 CPUs and",
        ),
        (Demand(4), [Node(3, 0)], r"each trial needs 4 CPUs \(launch.threads\), got 3 in all"),
        (
            Demand(2, 1),
            [Node(4, 0), Node(1, 1)],
            r"each process needs 2 CPUs .* and 1 GPU .* room for 0: 4 CPUs and 0 GPUs; 1 CPU and 1 GPU$",
        ),
    ],
)
def test_what_fits_nowhere_is_refused(needs: Demand, nodes: list[Node], said: str) -> None:
    with pytest.raises(RunError, match=said):
        needs.slots(nodes)


GIB = 2**30


@pytest.mark.parametrize("memory", [15 * GIB, 80 * GIB])
@pytest.mark.parametrize("peak", [GIB // 64, GIB, 3 * GIB, 7 * GIB, 39 * GIB])
def test_as_many_trials_share_a_gpu_as_its_memory_holds(peak: int, memory: int) -> None:
    """Finds a share that lets one trial too many onto a GPU, or one too few."""
    fitting = max(1, int(memory / (_MARGIN * peak + _CONTEXT)))
    share = _share_of_gpu(peak, memory)
    assert Demand(1, share).slots([Node(10_000, 1)]) == (fitting if fitting <= 100 else fitting - 1)
    assert share == round(share, 4), "Ray cuts off what is finer"
    assert (fitting + 1) * share > 1


def test_the_largest_run_decides_and_a_run_without_gpu_asks_for_none() -> None:
    runs = [replace(REHEARSAL, peak_gpu_memory=peak * GIB, gpu_memory=80 * GIB) for peak in (1, 16, 4)]
    assert share_of(runs) == _share_of_gpu(16 * GIB, 80 * GIB) == 0.25
    assert _share_of_gpu(100 * GIB, 80 * GIB) == 1
    assert _share_of_gpu(0, 0) == share_of([]) == 0


def sweep(layers: tuple[Layer, ...], **launch: object) -> SweepPlan:
    written = values_layer("--set", {f"launch.{name}": value for name, value in launch.items()})
    return SweepPlan(name="search", layers=(*layers, written), space=SPACE, trials=4)


def test_what_auto_stands_for_is_measured_and_said(
    layers: tuple[Layer, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is no GPU here: the rehearsals are given. Finds one that asks for a part of a GPU before it is measured."""
    needs: list[Demand] = []

    def rehearsed(configs: object, demand: Demand) -> tuple[dict[str, tuple[float, Rehearsal]], list[RunError]]:
        needs.append(demand)
        return {"one": (0.0, replace(REHEARSAL, peak_gpu_memory=6 * GIB, gpu_memory=24 * GIB))}, []

    monkeypatch.setattr(estimate, "_rehearse_all", rehearsed)
    said: list[str] = []
    plan, nodes = sweep(layers, gpus="auto"), [Node(16, 2, accelerators=frozenset({"L4"})), Node(8, 0)]
    assert measured_share(plan, tmp_path, nodes, said.append) == 0.3333
    assert needs == [Demand(16, 1)]
    assert said == ["launch.gpus=auto: each trial asks for 0.3333 of a GPU, as its first steps took 6.00 of 24.00 GiB"]
    assert shared(plan.base(), nodes, 64, 0.3333) == Demand(2, 0.3333)
    two = [*nodes, Node(8, 1, accelerators=frozenset({"T4"}))]
    with pytest.raises(RunError, match=r"must be of one kind, got L4 and T4: choose one by launch.accelerator_type=L4"):
        measured_share(plan, tmp_path, two, said.append)
    chosen = sweep(layers, gpus="auto", accelerator_type="T4")
    assert measured_share(chosen, tmp_path, two, said.append) == 0.3333
    assert needs[1:] == [Demand(8, 1, accelerator="T4")]


def test_auto_is_no_gpu_where_there_is_none(layers: tuple[Layer, ...], tmp_path: Path) -> None:
    said: list[str] = []
    assert measured_share(sweep(layers, gpus="auto"), tmp_path, [Node(4, 0)], said.append) == 0
    assert said == ["launch.gpus=auto: no machine has a GPU, so trials run on CPUs"]
    assert measured_share(sweep(layers), tmp_path, [Node(4, 0)], said.append) == 0
    assert measured_share(sweep(layers), tmp_path, [Node(4, 2), Node(4, 0)], said.append) == 0
    assert said[1:] == ["launch.gpus=0 leaves 2 GPUs unused; launch.gpus=auto lets trials share them"]
    assert shared(sweep(layers, gpus="auto").base(), [Node(4, 0)], 4) == Demand(1)


def test_only_machines_with_the_kind_of_gpu_count(layers: tuple[Layer, ...]) -> None:
    nodes = [Node(8, 4, accelerators=frozenset({"T4"})), Node(16, 2, accelerators=frozenset({"A100"}))]
    config = sweep(layers, gpus=1, accelerator_type="A100").base()
    assert shared(config, nodes, 64) == Demand(8, 1, accelerator="A100")
    assert shared(config, nodes, 64).slots(nodes) == 2
    with pytest.raises(RunError, match=r"must have a GPU A100 \(launch.accelerator_type\), got T4"):
        shared(config, nodes[:1], 64)


def test_kinds_of_gpu_are_those_that_the_cluster_has(layers: tuple[Layer, ...]) -> None:
    """Finds a refusal of a kind newer than this version, and a misspelt one that Ray would wait for."""
    config = sweep(layers, gpus=1, accelerator_type="R100").base()
    assert shared(config, [Node(8, 4, accelerators=frozenset({"R100"}))], 64).accelerator == "R100"
    with pytest.raises(RunError, match=r"must have a GPU R100 .*, got T4, V100; did you mean 'V100'\?"):
        shared(config, [Node(8, 4, accelerators=frozenset({"T4", "V100"}))], 64)
    with pytest.raises(ConfigError, match=r"launch.accelerator_type: "):
        sweep(layers, accelerator_type="").base()


SWEEPS = """
import os
import ray
ray.init(num_cpus=2, num_gpus=1, resources={"accelerator_type:A100": 1}, include_dashboard=False)
os.environ["IS_DRIVER"] = "yes"
import dice_ray

def taken(event):
    free = ray.available_resources()
    print("taken", gpus, 1 - free.get("GPU", 0), f'{1 - free["accelerator_type:A100"]:.3f}')

small = {"data.source.synthetic.size": 200, "training.epochs": 8, "launch.accelerator_type": "A100"}
small["loss.custom.target"] = "seen.py:build"
for gpus in (0.5, "auto", 0):
    settings = small | {"launch.gpus": gpus, "launch.threads": 2}
    options = {"space": "optimizer_tuning", "trials": 1, "name": f"search{gpus}", "callbacks": [taken]}
    dice_ray.tune("synthetic_pairs", settings, **options)
"""

SEEN = """
import os
from pathlib import Path

import ray

from dice_ray.losses.cross_entropy import CrossEntropyLoss

def build(facts):
    if "IS_DRIVER" not in os.environ:
        given = ray.get_runtime_context().get_assigned_resources().get("GPU", 0)
        Path(f"{given:g} {os.environ['CUDA_VISIBLE_DEVICES']}.seen").touch()
    return CrossEntropyLoss(facts.link)
"""


@pytest.mark.ray
@pytest.mark.slow
def test_ray_is_asked_for_the_gpu_and_its_kind_and_a_trial_that_asks_for_none_sees_none() -> None:
    """Finds trials, or the first steps that are measured, that ask for neither, and trials that use one unasked.

    The GPU is declared, and none is here: torch takes nothing of it in the first steps, so that `auto` is 0.
    """
    Path("seen.py").write_text(SEEN)
    environment = of_driver(_LOOPBACK) | {
        "PYTHONPATH": os.pathsep.join(sys.path),
        "DICE_RAY_VERBOSE": "1",
        "CUDA_VISIBLE_DEVICES": "-1",  # the number of a GPU for Ray, and of none for torch
    }
    done = subprocess.run(
        [sys.executable, "-c", SWEEPS], env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    lines = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("taken")]
    # Ray says late what was taken or given back: in the first events, and in the last ones.
    assert max(taken for gpus, taken, _ in lines if gpus == "0.5") == "0.5"
    assert min(taken for gpus, taken, _ in lines if gpus == "auto") == "0.0"
    assert {gpus: max(kind for each, _, kind in lines if each == gpus) for gpus in ("0.5", "auto")} == {
        "0.5": "0.001",
        "auto": "0.001",
    }
    assert {file.stem for file in Path().glob("*.seen")} == {"0.5 -1", "1 -1", "0 "}
