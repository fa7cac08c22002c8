"""A user-defined loss, given by its import path."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field

from dice_ray.errors import ConfigError, Problem, nearest
from dice_ray.losses.base import Loss, LossBranch

if TYPE_CHECKING:
    from dice_ray.terms import Link, TermFacts


class CustomConfig(LossBranch):
    """The `Loss` that the user's function `target(facts, **parameters)` returns.

    >>> CustomConfig(target="my_package.losses:build", parameters={"factor": 2}).target
    'my_package.losses:build'
    """

    name: ClassVar[str] = "custom"
    formula: ClassVar[str] = "what target(facts, **parameters) builds"
    source: ClassVar[str] = "a package of your own"
    supported: ClassVar[tuple[Link, ...]] = ("softmax", "sigmoid", "position")
    target: Annotated[str, Field(pattern=r"^[\w.]+:\w+$", description="package.module:function")]
    parameters: dict[str, Any] = Field(default_factory=dict, description="passed on")

    def can_mine(self, facts: TermFacts) -> bool:
        return False

    def build(self, facts: TermFacts) -> Loss:
        if problems := self.problems(facts, "loss.custom"):
            raise ConfigError(problems)
        module_name, _, function = self.target.partition(":")
        loss = getattr(importlib.import_module(module_name), function)(facts, **self.parameters)
        if not isinstance(loss, Loss):
            must = "must return a dice_ray.losses.base.Loss"
            raise ConfigError([Problem("loss.custom.target", must, f"{type(loss).__name__} from {self.target}")])
        return loss

    def problems(self, facts: TermFacts, path: str) -> list[Problem]:
        module_name, _, function = self.target.partition(":")
        try:
            module = importlib.import_module(module_name)
        except ImportError as error:
            return [Problem(f"{path}.target", f"must name a module that can be imported ({error})", repr(module_name))]
        if callable(getattr(module, function, None)):
            return []
        known = tuple(name for name, value in vars(module).items() if callable(value) and not name.startswith("_"))
        must = f"must name a function in {module_name}"
        return [Problem(f"{path}.target", must, repr(function), suggestion=nearest(function, known), known=known)]
