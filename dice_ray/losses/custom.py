"""A user-defined loss, given by its address."""

from __future__ import annotations

import inspect
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from dice_ray.errors import ConfigError, InputError, LossInputError, Problem, UnknownNameError
from dice_ray.losses.base import Loss, LossBranch, mean
from dice_ray.losses.items import Items
from dice_ray.user_code import Address, load

if TYPE_CHECKING:
    from dice_ray.terms import Link, TermFacts


class FunctionLoss(Loss):
    """A function of logits and targets, applied to the items of each micro-batch that are not masked.

    - `function(logits, targets)` returns the loss of each item, `(N,)`, or their mean.
    - Softmax: `logits_NC` and integer `targets_N`; for two classes the logits have the mean 0. Sigmoid: `logits_N` and
      `targets_N`, 0 or 1 in the type of the logits, as binary cross-entropy takes them.
    - The loss of a step is the mean over all its items: exact for any number of workers and micro-batches if the
      function returns a loss for each item, or their plain mean. Anything else, such as a ratio of sums over the batch
      or a mean with class weights, is computed for each micro-batch, and these are averaged by their number of items.
    """

    is_item_mean = True

    def __init__(self, link: Link, function: Any) -> None:
        super().__init__(link)
        self.function = function

    def sums(self, items: Items) -> Tensor:
        logits, targets_N = items.logits, items.targets
        if self.link == "sigmoid":
            targets_N = targets_N.to(logits.dtype)
        elif items.is_two_class:
            logits = torch.stack((-logits, logits), -1) / 2
        if items.valid is not None:
            logits, targets_N = logits[items.valid], targets_N[items.valid]
        num_items = len(targets_N)
        if not num_items:
            return torch.stack((items.logits.sum() * 0, items.logits.new_tensor(0)))
        if isinstance(self.function, nn.Module):
            self.function.to(logits.device)
        loss = self.function(logits, targets_N)
        if not isinstance(loss, Tensor) or loss.shape not in ((), (num_items,)):
            got = tuple(loss.shape) if isinstance(loss, Tensor) else type(loss).__name__
            raise LossInputError(
                f"A loss function must return a loss for each of the {num_items} items, or their mean, got {got}."
            )
        if logits.requires_grad and not loss.requires_grad:
            raise LossInputError(
                "A loss function must be computed from the logits by operations of torch that have a gradient; what it "
                "returned has none, as after argmax, detach, item or NumPy."
            )
        total = loss.sum() if loss.ndim else loss * num_items
        return torch.stack((total, total.new_tensor(num_items)))

    def value(self, statistics: Tensor) -> Tensor:
        return mean(statistics)


class CustomConfig(LossBranch):
    """A loss of the user's.

    Attributes:
        target: Its address.
        form: `builder`: `target(facts, **parameters)` returns a `Loss`. `function`: `target(logits, targets,
            **parameters)` returns the loss of each item or their mean; a class is first called with the parameters.
        parameters: Its other arguments.

    >>> CustomConfig(target="my_package.losses:build", parameters={"factor": 2}).target
    'my_package.losses:build'
    """

    name = "custom"
    group = "own"
    formula = "what target builds or computes"
    source = "a file or package of your own"
    use = "A loss of your own."
    supported = ("softmax", "sigmoid", "position")
    target: Annotated[Address, Field(pattern=r"^.+:\w+$", description="module:function or file.py:function")]
    form: Literal["builder", "function"] = "builder"
    parameters: dict[str, Any] = Field(default_factory=dict, description="passed on")

    @property
    def is_item_mean(self) -> bool:
        """Whether it is known to be one before it is built."""
        return self.form == "function"

    def can_mine(self, facts: TermFacts) -> bool:
        return False

    def build(self, facts: TermFacts) -> Loss:
        if problems := self.problems(facts, "loss.custom"):
            raise ConfigError(problems)
        target = load(self.target)
        if self.form == "function":
            if inspect.isclass(target):
                return FunctionLoss(facts.link, target(**self.parameters))
            return FunctionLoss(facts.link, partial(target, **self.parameters) if self.parameters else target)
        loss = target(facts, **self.parameters)
        if not isinstance(loss, Loss):
            must = "must return a dice_ray.losses.base.Loss"
            got = f"{type(loss).__name__} from {self.target} (form=function is for a function of logits and targets)"
            raise ConfigError([Problem("loss.custom.target", must, got)])
        return loss

    def problems(self, facts: TermFacts, path: str) -> list[Problem]:
        try:
            target = load(self.target)
        except (InputError, UnknownNameError) as error:
            return [Problem(f"{path}.target", f"must be the address of a function, and: {error}")]
        if self.form == "builder" and inspect.isbuiltin(target):
            must = "must be a function or class in Python that takes the facts of a term and returns a Loss"
            return [Problem(f"{path}.target", must, self.target)]
        if self.form == "function" and facts.link == "position":
            return [Problem(f"{path}.form", "must be builder for a term over positions", self.form)]
        first = ("facts",) if self.form == "builder" else () if inspect.isclass(target) else ("logits", "targets")
        called = target.forward if isinstance(target, nn.Module) else target
        try:
            inspect.signature(called).bind(*first, **self.parameters)
        except TypeError as error:
            must = f"must be a function that can be called with ({', '.join([*first, *self.parameters])}): {error}"
            got = f"{self.target}({', '.join(inspect.signature(called).parameters)})"
            return [Problem(f"{path}.{'parameters' if self.parameters else 'target'}", must, got)]
        except ValueError:
            pass  # some functions in C have no signature
        return []
