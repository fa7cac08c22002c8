"""A user-defined loss, given by its address."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field

from dice_ray.errors import ConfigError, InputError, Problem, UnknownNameError
from dice_ray.losses.base import Loss, LossBranch
from dice_ray.user_code import Address, load

if TYPE_CHECKING:
    from dice_ray.terms import Link, TermFacts


class CustomConfig(LossBranch):
    """The `Loss` that the user's function `target(facts, **parameters)` returns.

    Attributes:
        target: The function.
        parameters: Its arguments after the facts of the term.

    >>> CustomConfig(target="my_package.losses:build", parameters={"factor": 2}).target
    'my_package.losses:build'
    """

    name: ClassVar[str] = "custom"
    formula: ClassVar[str] = "what target(facts, **parameters) builds"
    source: ClassVar[str] = "a file or package of your own"
    use: ClassVar[str] = "A loss of your own."
    supported: ClassVar[tuple[Link, ...]] = ("softmax", "sigmoid", "position")
    target: Annotated[Address, Field(pattern=r"^.+:\w+$", description="module:function or file.py:function")]
    parameters: dict[str, Any] = Field(default_factory=dict, description="passed on")

    def can_mine(self, facts: TermFacts) -> bool:
        return False

    def build(self, facts: TermFacts) -> Loss:
        if problems := self.problems(facts, "loss.custom"):
            raise ConfigError(problems)
        loss = load(self.target)(facts, **self.parameters)
        if not isinstance(loss, Loss):
            must = "must return a dice_ray.losses.base.Loss"
            raise ConfigError([Problem("loss.custom.target", must, f"{type(loss).__name__} from {self.target}")])
        return loss

    def problems(self, facts: TermFacts, path: str) -> list[Problem]:
        try:
            load(self.target)
        except (InputError, UnknownNameError) as error:
            return [Problem(f"{path}.target", f"must be the address of a function, and: {error}")]
        return []
