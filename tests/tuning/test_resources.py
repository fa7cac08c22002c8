"""What a trial demands: how many fit at once, and what fits nowhere."""

from __future__ import annotations

import pytest

from dice_ray.config.load import Layer, resolve, values_layer
from dice_ray.errors import RunError
from dice_ray.run.cluster import Node
from dice_ray.tuning.resources import Demand, demand, shared

ONE_WORKER = Demand(4, 0, 1, 1)
TWO_ON_GPUS = Demand(1, 1, 2, 2)
TWO_TO_FOUR = Demand(2, 0, 4, 2)


def test_a_trial_demands_what_it_is_launched_with(layers: tuple[Layer, ...]) -> None:
    assert demand(resolve(layers), 1) == Demand(1)
    wide = {"launch.workers": 2, "launch.threads": 3, "launch.gpus": 1}
    found = demand(resolve([*layers, values_layer("--set", wide)]), 8)
    assert found == Demand(3, 1, 2, 2)
    assert (found.all_cpus, found.all_gpus) == (6, 2)
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
        (Demand(1, 1), [Node(10, 0)], r"each trial needs 1 GPU \(launch.workers x launch.gpus\), got 0 in all"),
        (TWO_ON_GPUS, [Node(10, 1)], r"each trial needs 2 GPUs \(launch.workers x launch.gpus\), got 1 in all"),
        (
            ONE_WORKER,
            [Node(3, 0)],
            r"each trial needs 4 CPUs \(launch.workers x launch.threads\), got 3 in all",
        ),
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
        (
            Demand(4),
            [Node(3, 0), Node(3, 0)],
            r"each process needs 4 CPUs .* room for 0: 3 CPUs and 0 GPUs; 3 CPUs and 0 GPUs$",
        ),
    ],
)
def test_what_fits_nowhere_is_refused(needs: Demand, nodes: list[Node], said: str) -> None:
    with pytest.raises(RunError, match=said):
        needs.slots(nodes)
