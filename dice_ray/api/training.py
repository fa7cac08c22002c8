"""One run: trained, or rehearsed by its first steps; and the user's functions that are called while something runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, TypeAlias

from dice_ray.api import tracking
from dice_ray.api.library import preset_of
from dice_ray.api.notebook import NotebookScreen, is_notebook
from dice_ray.api.presets import Written, validate
from dice_ray.api.results import Best, DryRun, Result, interruptible
from dice_ray.errors import InputError
from dice_ray.files import runs_folder
from dice_ray.run.names import TRAIN_EXPERIMENT, check_name, new_name
from dice_ray.run.own_loss import with_loss

if TYPE_CHECKING:
    from dice_ray.config.schema import RunConfig
    from dice_ray.run.driver import Driver, Event, Screen, Show, TrialCounts
    from dice_ray.run.own_loss import GivenLoss
    from dice_ray.run.tables import Preset
    from dice_ray.training.loop import Evaluation

    Callback: TypeAlias = Callable[[Evaluation | TrialCounts], object]
    """Called with each evaluation of a run, and with the counts of a sweep or study when a trial has ended."""


def train(
    preset: Preset,
    settings: Written = (),
    *,
    loss: GivenLoss | None = None,
    name: str | None = None,
    register: str | None = None,
    dry_run: bool = False,
    callbacks: Sequence[Callback] = (),
    note: str | None = None,
    tags: Mapping[str, str] | Sequence[str] | None = None,
    show: Show | None = None,
) -> Result:
    """Fine-tune one task with one loss.

    Args:
        preset: A shipped preset's name, a YAML file, a table (a pandas DataFrame or a `datasets.Dataset`), or `Tables`.
        settings: Values over the preset, by path: `{"loss.focal.gamma": 3}`, or texts as `--set` takes them.
        loss: The name of a loss, or a function `loss(logits, targets)` or a module of torch that returns the loss of
            each item or their mean (see `dice_ray.losses.custom.FunctionLoss`).
        name: Name of the run, by default made from the preset's; the name of an earlier run resumes it.
        register: Register the best model in MLflow, as the next version of the model of this name.
        dry_run: Run only the first steps, estimate what the whole takes, and leave no files behind.
        callbacks: Functions that are called in this process with each evaluation; `[print]` prints a line for each.
        note: A note that MLflow's pages show, in Markdown.
        tags: Tags in MLflow.
        show: Makes the screen that shows progress; in a notebook, where not given, a display that is updated in place.

    Raises:
        Interrupted: By Ctrl-C or SIGTERM, after a checkpoint was written; `resume` continues the run.
    """
    from dice_ray.run.driver import Driver
    from dice_ray.run.folder import stored_config

    settings = settings if loss is None else with_loss(settings, loss)
    driver = Driver(show=shown(show, callbacks), tags=tracking.own_tags(note, tags))
    preset = preset_of(preset)
    config = validate(preset, settings)
    name = check_name(name or new_name(f"{Path(preset).stem}-{config.loss.name}"))
    stored = stored_config(runs_folder() / name)
    config = config.with_data_name(Path(preset).stem if stored is None else stored.tracking.data)
    return train_config(config, name, driver, register, is_dry=dry_run)


def train_config(config: RunConfig, name: str, driver: Driver, register: str | None, *, is_dry: bool = False) -> Result:
    """Train a resolved configuration in the folder of this name, or resume it there, or estimate it."""
    from dice_ray.config.load import as_yaml
    from dice_ray.run import build, single
    from dice_ray.run.folder import check_config, with_stored_precision
    from dice_ray.run.rehearsal import rehearse
    from dice_ray.tracking.schema import sibling
    from dice_ray.tuning.places import Place

    tracking.check_register(register)
    folder = runs_folder() / name
    config = build.fix_precision(with_stored_precision(config, folder))
    if is_dry:
        check_config(config, folder)
        rehearsal = DryRun(as_yaml(config), folder, rehearse(config))
        return Result(name, TRAIN_EXPERIMENT, is_finished=False, rehearsal=rehearsal)
    with interruptible(name, TRAIN_EXPERIMENT) as stop:
        best = single.train_alone(config, folder, TRAIN_EXPERIMENT, replace(driver, is_stopped=stop))
        stop.check()
        if best is None:
            raise KeyboardInterrupt
        place = Place(folder, TRAIN_EXPERIMENT, name)
        tracking.keep_best(place, "dev", store_text=config.tracking.text, register=register)
    has_test = config.data.has("test") or config.data.test_share is not None
    metric = build.objective(config)
    threshold = None
    if metric.endswith("_tuned") and config.task.positive_label() is not None:
        fitted = best[sibling(metric, "threshold")]
        threshold = fitted if fitted == best["dev/threshold_used"] else None
    is_collapsed = bool(best[sibling(metric, "collapsed")])
    trained = Best(name, metric, best[metric], is_collapsed=is_collapsed, threshold=threshold)
    return Result(name, TRAIN_EXPERIMENT, trained=trained, has_test=has_test)


def shown(show: Show | None, callbacks: Sequence[Callback]) -> Show | None:
    """A screen that calls the callbacks and shows what the given one, or a notebook's, shows; None without either."""
    if callable(callbacks):
        raise InputError(f"callbacks must be a list of functions, as [print], got {callbacks!r}")
    if show is None and is_notebook():
        show = NotebookScreen
    if not callbacks:
        return show

    @contextmanager
    def screen(terminal: TextIO) -> Iterator[Screen]:
        with ExitStack() as stack:
            yield _Caller(callbacks, terminal, stack.enter_context(show(terminal)) if show else None)

    return screen


class _Caller:
    """A screen that calls functions. What they print goes to the terminal or notebook, not to the log."""

    def __init__(self, callbacks: Sequence[Callback], terminal: TextIO, screen: Screen | None) -> None:
        self._callbacks, self._terminal, self._screen = callbacks, terminal, screen
        self._num_ended: int | None = None

    def show(self, event: Event) -> None:
        from dice_ray.run.driver import TrialCounts
        from dice_ray.training.loop import Evaluation

        if self._screen:
            self._screen.show(event)
        if isinstance(event, TrialCounts):
            before, self._num_ended = self._num_ended, event.num_ended
            # The first counts come before a trial ends; those of a resumed sweep hold trials that ended earlier, of
            # which a failed one that starts again does not count any more.
            if before is None or event.num_ended <= before:
                return
        elif not isinstance(event, Evaluation):
            return
        with redirect_stdout(self._terminal):
            for callback in self._callbacks:
                callback(event)
