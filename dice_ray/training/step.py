"""The gradient of one step, exact for any number of workers and micro-batches.

With dropout off, 1 worker x 64 rows gives the gradient of 2 x 32 and of 4 micro-batches x 16. Averaging the losses of
parts, as DDP with gradient accumulation does, is wrong for a loss that is not a mean over rows: for a set-level dice
loss the gradient was off by 17 to 77 %. So the loss of a step is always that of all its items:

- *One pass* for a mean over items. A micro-batch needs to know of the others only how many items they have, which masks
  and targets tell before the encoder runs. The counts are all-reduced, and each micro-batch goes backward at once.
- *Two passes* for set-level losses and mining, which depend on all logits of the step. The first pass computes the
  logits without a graph, then the step's loss and its gradient with respect to the logits. The second pass runs each
  micro-batch again, with the random state restored so that dropout draws the same mask, and goes backward from the
  gradient of its logits. If no worker has more than one micro-batch, the first pass keeps its graph, and the second
  does not run the encoder again.

Gradients are summed over the workers once, after all backward passes. Every stage ends with an agreement of the workers
(`_agreed`): if one of them ran out of memory, all of them start the step again with micro-batches of half the tokens.
Which way is taken depends only on what all workers know, the losses and the shares; otherwise they would wait for each
other in different collectives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor

from dice_ray.errors import LossInputError, RunError
from dice_ray.losses.base import Loss
from dice_ray.losses.items import bad_input
from dice_ray.losses.reduction import num_workers, step_loss, sum_over_workers
from dice_ray.models.encoder import EncoderWithHeads
from dice_ray.tasks.base import Batch, Row, Task
from dice_ray.terms import Link, Term
from dice_ray.training import batches, workers
from dice_ray.training.memory import ResultT, attempted
from dice_ray.training.precision import Logits, Numerics, forward, on_device, random_state, set_random_state

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_LossScaler: TypeAlias = Callable[[Tensor], Tensor]
_Shares: TypeAlias = list[list[list[int]]]
"""Of each worker: its micro-batches, each a list of rows."""
_Statistics: TypeAlias = Mapping[str, tuple[float, Tensor]]
"""Of each term: its weight, and the statistics of this worker's items."""


@dataclass
class TrainingTally:
    """Counts of a run's training: the first three of the whole run, the others since the last evaluation.

    Attributes:
        max_tokens: The most tokens, padding included, in a micro-batch; halved each time memory runs out.
        num_halvings: How often that happened.
        total_seconds: Spent in steps, up to the last evaluation.
        losses: Of each step.
        seconds: Spent in steps.
        num_tokens: Tokens of all workers, without padding.
        num_padded: Tokens of all workers, padding included.
    """

    max_tokens: int
    num_halvings: int = 0
    total_seconds: float = 0.0
    losses: list[float] = field(default_factory=list)
    seconds: float = 0.0
    num_tokens: int = 0
    num_padded: int = 0

    @property
    def padding(self) -> float:
        """The share of padding in all tokens."""
        return 1 - self.num_tokens / self.num_padded

    @property
    def tokens_per_second(self) -> float:
        """Without padding."""
        return self.num_tokens / self.seconds

    def halve(self, micro_batches: Sequence[Sequence[int]], lengths: Sequence[int]) -> None:
        """Make the limit of tokens half of the largest of these micro-batches, for which memory ran out.

        Raises:
            RunError: Each of them has one row only.
        """
        largest = max(batches.num_padded(micro_batch, lengths) for micro_batch in micro_batches)
        if all(len(micro_batch) == 1 for micro_batch in micro_batches):
            raise RunError(
                f"a row of {largest} tokens must fit into memory, but does not, even alone: choose a smaller encoder "
                "or max_length, or training.activations=recompute"
            )
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        # Half of what was needed, not of the limit: a step smaller than the limit would run out of memory again.
        self.max_tokens = min(self.max_tokens, largest) // 2
        self.num_halvings += 1

    def take_metrics(self) -> dict[str, float]:
        """The metrics of training since the last evaluation; starts the counts again."""
        self.total_seconds += self.seconds
        metrics = {
            "train/loss": sum(self.losses) / len(self.losses),
            "train/padding": self.padding,
            "train/tokens_per_second": self.tokens_per_second,
            "train/out_of_memory": float(self.num_halvings),
            "train/seconds": self.total_seconds,
        }
        self.losses, self.seconds, self.num_tokens, self.num_padded = [], 0.0, 0, 0
        return metrics


@dataclass
class Gradient:
    """Computes the loss and the gradient of steps."""

    task: Task[Any]
    tokenizer: PreTrainedTokenizerBase
    model: EncoderWithHeads
    losses: Mapping[str, Loss]
    rows: Sequence[Row]
    numerics: Numerics
    tally: TrainingTally

    def __post_init__(self) -> None:
        self.lengths = [len(row["input_ids"]) for row in self.rows]

    def accumulate(self, rows: Sequence[int], scale: _LossScaler = lambda loss: loss) -> Tensor:
        """The loss of a step of these rows; leaves the gradient of the scaled loss in the parameters.

        The parameters must have no gradients before. Every worker gets the loss and the gradient of the whole step.

        Raises:
            RunError: A single row does not fit into memory.
        """
        while (loss := self._attempt(shares := self._shares(rows), scale)) is None:
            self.model.zero_grad()
            self.tally.halve([micro_batch for share in shares for micro_batch in share], self.lengths)
        workers.sum_gradients(self.model.parameters())
        self.tally.num_tokens += sum(self.lengths[row] for row in rows)
        self.tally.num_padded += sum(batches.num_padded(each, self.lengths) for share in shares for each in share)
        return loss

    @torch.no_grad()
    def bad_input(self, rows: Sequence[int]) -> LossInputError | None:
        """The logit or target of this worker's share that makes the loss of a step not finite, if there is one."""
        for batch in self._batches(self._shares(rows)):
            for name, term in self.task.terms(forward(self.model, batch, self.numerics), batch).items():
                if problem := bad_input(self.losses[name].link, term.logits, term.targets, term.mask):
                    return problem
        return None

    def _shares(self, rows: Sequence[int]) -> _Shares:
        return batches.micro_batches(rows, self.lengths, self.tally.max_tokens, num_workers())

    def _batches(self, shares: _Shares) -> list[Batch]:
        """The micro-batches of this worker."""
        collated = (self.task.collate(self.rows, each, self.tokenizer) for each in shares[workers.rank()])
        return [on_device(batch, self.numerics.device) for batch in collated]

    def _attempt(self, shares: _Shares, scale: _LossScaler) -> Tensor | None:
        """The step's loss and this worker's part of the gradient; `None` if any worker ran out of memory."""
        micro_batches = self._batches(shares)
        one_each = all(len(share) == 1 for share in shares)
        if all(loss.is_item_mean for loss in self.losses.values()):
            # A single micro-batch is the whole step: its own statistics hold the number of items.
            num_items = {} if one_each and num_workers() == 1 else self._num_items(micro_batches)
            local_loss = self._agreed(lambda: self._item_means(micro_batches, num_items, scale))
            return None if local_loss is None else sum_over_workers(local_loss)

        states: list[list[Tensor]] = []
        logits = self._agreed(lambda: [self._first_pass(batch, one_each, states) for batch in micro_batches])
        if logits is None:
            return None
        if (of_step := self._logit_gradients(micro_batches, logits, scale)) is None:
            return None
        loss, gradients = of_step
        graphs = logits if one_each else None
        if self._agreed(lambda: self._second_pass(micro_batches, graphs, gradients, states)) is None:
            return None
        return loss

    def _agreed(self, stage: Callable[[], ResultT]) -> ResultT | None:
        """The result of a stage; `None` on all workers if it runs out of memory on one."""
        result = attempted(stage)
        # Also reached after running out of memory: a worker that left here would let the others wait for ever.
        (is_missing,) = workers.any_of((result is None,), self.numerics.device)
        return None if is_missing else result

    def _item_means(self, micro_batches: list[Batch], num_items: Mapping[str, Tensor], scale: _LossScaler) -> Tensor:
        """This worker's part of the loss, after the backward pass of each micro-batch."""
        total = torch.zeros((), device=self.numerics.device)
        for batch in micro_batches:
            terms = self.task.terms(forward(self.model, batch, self.numerics), batch)
            loss = self._weighted(self._statistics(terms), num_items=num_items)
            scale(loss).backward()
            total += loss.detach()
        return total

    def _num_items(self, micro_batches: list[Batch]) -> dict[str, Tensor]:
        """The number of items of each term in the whole step, from blank logits: the encoder has not run yet."""
        counts: dict[str, Tensor] = {}
        for batch in micro_batches:
            terms = self.task.terms(self.model.blank_logits(batch.inputs, batch.targets), batch)
            for name, term in terms.items():
                counts[name] = counts.get(name, 0) + self.losses[name].num_items(term.targets, term.mask)
        return dict(zip(counts, sum_over_workers(torch.stack(list(counts.values()))), strict=True))

    def _first_pass(self, batch: Batch, keep_graph: bool, states: list[list[Tensor]]) -> Logits:
        """The logits of a micro-batch; notes the random state that the second pass restores."""
        states.append(random_state(self.numerics.device))
        with torch.set_grad_enabled(keep_graph):
            return forward(self.model, batch, self.numerics)

    def _logit_gradients(
        self, micro_batches: list[Batch], logits: list[Logits], scale: _LossScaler
    ) -> tuple[Tensor, list[Logits]] | None:
        """The loss of the whole step, and its gradient with respect to the logits of each micro-batch.

        `None` if any worker ran out of memory.
        """
        leaves = [{name: each.detach().requires_grad_() for name, each in of_batch.items()} for of_batch in logits]

        def sums() -> _Statistics:
            parts = [self.task.terms(of_batch, batch) for of_batch, batch in zip(leaves, micro_batches, strict=True)]
            return self._statistics(
                {name: _joined(self.losses[name].link, [part[name] for part in parts]) for name in parts[0]}
            )

        # A worker that failed between the collectives of a loss itself could not agree with the others, which wait.
        inner = (each for loss in self.losses.values() for each in loss.modules())
        exchanges = num_workers() > 1 and any(isinstance(each, Loss) and each.exchanges for each in inner)
        statistics = sums() if exchanges else self._agreed(sums)
        if statistics is None:
            return None
        totals = {name: sum_over_workers(each.detach()) for name, (_, each) in statistics.items()}

        def backward() -> Tensor:
            loss = self._weighted(statistics, totals=totals)
            scale(loss).backward()
            return loss.detach()

        if (loss := self._agreed(backward)) is None:
            return None
        return loss, [{name: leaf.grad for name, leaf in each.items() if leaf.grad is not None} for each in leaves]

    def _second_pass(
        self,
        micro_batches: list[Batch],
        graphs: list[Logits] | None,
        gradients: list[Logits],
        states: list[list[Tensor]],
    ) -> bool:
        """Go backward from the gradients of the logits, which are computed again unless their graphs were kept."""
        for number, (batch, of_logits) in enumerate(zip(micro_batches, gradients, strict=True)):
            if graphs is None:
                set_random_state(states[number], self.numerics.device)
            logits = forward(self.model, batch, self.numerics) if graphs is None else graphs[number]
            torch.autograd.backward([logits[name] for name in of_logits], list(of_logits.values()))
        return True

    def _statistics(self, terms: Mapping[str, Term]) -> _Statistics:
        return {
            name: (term.weight, self.losses[name].statistics(term.logits, term.targets, term.mask))
            for name, term in terms.items()
        }

    def _weighted(
        self,
        statistics: _Statistics,
        num_items: Mapping[str, Tensor] = MappingProxyType({}),
        totals: Mapping[str, Tensor] = MappingProxyType({}),
    ) -> Tensor:
        parts = [
            weight * step_loss(self.losses[name], each, num_items=num_items.get(name), totals=totals.get(name))
            for name, (weight, each) in statistics.items()
        ]
        return torch.stack(parts).sum()


def _joined(link: Link, terms: Sequence[Term]) -> Term:
    """The terms of several micro-batches, which may be padded to different lengths, as one term.

    Rows of positions are padded to the longest one, and their padding is masked; other items are flattened.
    """
    if len(terms) == 1:
        return terms[0]
    targets_N = torch.cat([term.targets.reshape(-1) for term in terms])
    if link == "position":
        longest = max(term.logits.shape[-1] for term in terms)
        masks = [torch.ones_like(t.logits, dtype=torch.bool) if t.mask is None else t.mask.bool() for t in terms]
        logits_NL, mask_NL = (
            torch.cat([F.pad(part.reshape(-1, part.shape[-1]), (0, longest - part.shape[-1])) for part in parts])
            for parts in ([term.logits for term in terms], masks)
        )
        return Term(logits_NL, targets_N, mask_NL, terms[0].weight)
    flat = [-1] if link == "sigmoid" else [-1, terms[0].logits.shape[-1]]
    masks = [torch.ones_like(t.targets, dtype=torch.bool) if t.mask is None else t.mask.bool() for t in terms]
    mask_N = None if all(term.mask is None for term in terms) else torch.cat([mask.reshape(-1) for mask in masks])
    return Term(torch.cat([term.logits.reshape(flat) for term in terms]), targets_N, mask_N, terms[0].weight)
