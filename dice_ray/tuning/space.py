"""Search spaces by their address: functions of an Optuna trial that suggest parameters and return nothing.

Ray pickles the searcher, with its space, after each suggestion. A function of a script or a lambda cannot be pickled,
so a space is stored as its address and loaded when it is called.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

from dice_ray import user_code
from dice_ray.errors import InputError, reason_of

if TYPE_CHECKING:
    from optuna import Trial
    from optuna.trial import FixedTrial

SpaceFunction: TypeAlias = "Callable[[Trial | FixedTrial], None]"


@dataclass(frozen=True)
class Space:
    """A space that can be pickled: its address, loaded at the first call."""

    address: str

    def __reduce__(self) -> tuple[type[Space], tuple[str]]:
        return type(self), (self.address,)

    def __call__(self, trial: Trial | FixedTrial) -> None:
        """Suggest every parameter of a trial.

        Raises:
            InputError: The function failed, or returned something: Ray lets a returned constant override suggestions.
        """
        function = self._function
        try:
            returned: Any = function(trial)
        except Exception as error:
            raise InputError(f"the space {self.address} must suggest a trial, and raised {reason_of(error)}") from error
        if returned is not None:
            raise InputError(
                f"a space must return nothing, and {self.address} returned {type(returned).__name__}: "
                "put constants into a preset or --set"
            )

    @cached_property
    def _function(self) -> SpaceFunction:
        return user_code.load(self.address)
