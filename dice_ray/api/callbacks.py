"""Functions of the user that are called while something runs, in the process that drives it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout
from typing import TYPE_CHECKING, TextIO, TypeAlias

from dice_ray.api.notebook import NotebookScreen, is_notebook
from dice_ray.errors import InputError

if TYPE_CHECKING:
    from dice_ray.run.driver import Event, Screen, Show, TrialCounts
    from dice_ray.training.loop import Evaluation

    Callback: TypeAlias = Callable[[Evaluation | TrialCounts], object]
    """Called with each evaluation of a run, and with the counts of a sweep or study when a trial has ended."""


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
            num_ended, before = event.done + event.failed + event.pruned, self._num_ended
            self._num_ended = num_ended
            # The first counts come before a trial ends; those of a resumed sweep hold trials that ended earlier, of
            # which a failed one that starts again does not count any more.
            if before is None or num_ended <= before:
                return
        elif not isinstance(event, Evaluation):
            return
        with redirect_stdout(self._terminal):
            for callback in self._callbacks:
                callback(event)
