"""Training a run on Ray Train's workers; rank 0 sends its events to this process through a queue.

`TorchTrainer.fit` blocks until the run ends, so it runs in a thread, while the caller reads the queue. Four things are
not obvious (Ray 2.60):

- Closing the generator must free the workers at once. Ray Train has no call for that which works from a trial of Ray
  Tune: stopping a function trial hangs with its workers alive. Removing the workers' placement group ends them within a
  second. Rank 0 therefore sends its placement group first. Ray replaces workers that die, so a file marks the
  folder as stopped, and a worker that sees it ends at once.
- A run that is asked to stop marks the folder as stopped too, and waits: its workers look for the mark after each step,
  write a checkpoint and end, and Ray Train with them.
- A placement group outlives a process that is killed, and holds its CPUs. Its id lies in the run's folder, and the next
  attempt removes it, and the request for its CPUs. Where a trial gets no other attempt, the driver removes it.
- Workers that were restarted after a failure resume from the last checkpoint and report their history again: an
  evaluation that was reported before is not yielded again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from pathlib import Path
from threading import Thread
from typing import Any

from dice_ray.config.load import Layer, resolve
from dice_ray.config.schema import RunConfig
from dice_ray.errors import DiceRayError, RunError
from dice_ray.run import ray_internals
from dice_ray.run.build import Events, train_here
from dice_ray.run.cluster import enter, surroundings
from dice_ray.run.driver import lost_message
from dice_ray.run.folder import PLACEMENT_GROUP, RAY_TRAIN, STOPPED
from dice_ray.settings import nested
from dice_ray.training import workers
from dice_ray.training.evaluate import never
from dice_ray.training.loop import Evaluation, StepProgress


def train_on_ray(config: RunConfig, folder: Path, is_stopped: Callable[[], bool] = never) -> Events:
    """Train a run on Ray Train's workers; Ray must be running.

    Raises:
        RunError: A worker failed more often than `launch.max_failures`.
    """
    from ray.exceptions import RayError
    from ray.train import FailureConfig
    from ray.train import RunConfig as RayRunConfig
    from ray.train.torch import TorchConfig, TorchTrainer
    from ray.train.v2.api.config import ScalingConfig  # ray.train's has the type of an older one (Ray 2.60)
    from ray.util import remove_placement_group
    from ray.util.placement_group import PlacementGroup
    from ray.util.queue import Empty, Queue

    remove_leftover_group(folder)
    (folder / STOPPED).unlink(missing_ok=True)
    launch, num_gpus = config.launch, config.launch.num_gpus(auto=0)
    events = Queue(actor_options={"num_cpus": 0})
    trainer = TorchTrainer(
        _worker,
        train_loop_config={
            "config": nested(config),
            "folder": str(folder.resolve()),
            "events": events,
            "surroundings": surroundings(),
        },
        torch_config=TorchConfig(backend="nccl" if num_gpus else "gloo"),
        scaling_config=ScalingConfig(
            num_workers=(launch.least_workers, launch.workers) if launch.min_workers else launch.workers,
            # When it adds workers, all go back to the last checkpoint.
            elastic_resize_monitor_interval_s=30.0,
            use_gpu=num_gpus > 0,
            resources_per_worker={"CPU": launch.threads or 1, "GPU": num_gpus},
            accelerator_type=launch.accelerator_type,
        ),
        run_config=RayRunConfig(
            name=folder.name,
            storage_path=str(folder.resolve() / RAY_TRAIN),
            failure_config=FailureConfig(max_failures=launch.max_failures),
        ),
    )
    group: PlacementGroup | None = None
    last_step, is_complete = 0, False
    running: Future[object] = Future()

    def run() -> None:
        try:
            running.set_result(trainer.fit())
        except BaseException as error:  # noqa: BLE001  the caller raises it
            running.set_exception(error)

    Thread(target=run, daemon=True).start()  # not in a pool, whose threads Python waits for at the exit without a limit
    try:
        while not running.done() or not events.empty():
            if is_stopped():
                (folder / STOPPED).touch()
            try:
                event = events.get(timeout=0.2)
            except Empty:
                continue
            except RayError as error:  # of the queue, which dies with its machine
                raise RunError(lost_message(folder.name)) from error
            if isinstance(event, PlacementGroup):
                group = event
            elif isinstance(event, DiceRayError):
                raise event
            elif isinstance(event, StepProgress):
                yield event
            elif event.step > last_step:
                last_step, is_complete = event.step, event.finished
                yield event
        if failure := running.exception():
            # Where Ray's memory monitor killed a worker, one line alone says something.
            low = [line for line in str(failure).splitlines() if "running low on memory" in line]
            raise RunError(f"Ray Train stopped: {low[0] if low else failure}") from failure
    finally:
        if is_complete:
            wait([running], timeout=60)  # if stopped in that time, Ray Train would replace the workers
        if group is not None and not running.done():
            (folder / STOPPED).touch()
            remove_placement_group(group)
        (folder / PLACEMENT_GROUP).unlink(missing_ok=True)
        wait([running], timeout=10)


def remove_leftover_group(folder: Path) -> None:
    """Remove the placement group of an attempt whose process was killed; Ray must be running if there is one."""
    if not (file := folder / PLACEMENT_GROUP).exists():
        return
    import ray
    from ray.util.placement_group import PlacementGroup

    group_id, _, request = file.read_text().partition(" ")
    if group_id in ray.util.placement_group_table():  # the groups of a Ray that has ended are gone
        ray.util.remove_placement_group(PlacementGroup(ray.PlacementGroupID(bytes.fromhex(group_id))))
        ray_internals.cancel_request(request)
    file.unlink(missing_ok=True)


def _worker(settings: dict[str, Any]) -> None:
    """The training loop of one worker of Ray Train."""
    import ray

    enter(settings["surroundings"])
    events, folder = settings["events"], Path(settings["folder"])
    if (folder / STOPPED).exists():
        return
    config = resolve([Layer("the run", settings["config"])])
    is_rank_zero = workers.rank() == 0
    if is_rank_zero:
        group = ray.util.get_current_placement_group()
        assert group is not None
        (folder / PLACEMENT_GROUP).write_text(f"{group.id.hex()} {ray_internals.request_of_this_run()}")
        events.put(group)
    reported = time.monotonic()
    try:
        for event in train_here(config, folder, (folder / STOPPED).exists):
            if is_rank_zero and (isinstance(event, Evaluation) or time.monotonic() - reported >= 1):
                events.put(event)
                reported = time.monotonic()
    except DiceRayError as error:
        events.put(error)
