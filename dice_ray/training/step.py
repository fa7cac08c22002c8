"""The gradient of one step: that of all its items at once, however many workers and micro-batches hold them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor

from dice_ray.errors import LossInputError
from dice_ray.losses.base import Loss
from dice_ray.losses.items import bad_input
from dice_ray.losses.reduction import num_workers, step_loss, sum_over_workers
from dice_ray.models.encoder import EncoderWithHeads
from dice_ray.tasks.base import Batch, Row, Task
from dice_ray.terms import Link, Term
from dice_ray.training import batches, workers
from dice_ray.training.memory import attempted, halved
from dice_ray.training.precision import Logits, Numerics, forward, on_device, random_state, set_random_state

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Scale: TypeAlias = Callable[[Tensor], Tensor]
T = TypeVar("T")


@dataclass
class Tally:
    """What a run counts: since its last evaluation, but for the first three.

    Attributes:
        max_tokens: The most tokens, padding included, of a micro-batch: fewer each time that memory runs out.
        num_halvings: How often it did.
        total_seconds: Spent in steps, up to the last evaluation.
        losses: Of each step.
        seconds: Spent in steps.
        num_tokens: Tokens of all workers.
        num_padded: The same, padding included.
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
        """Its share of the tokens."""
        return 1 - self.num_tokens / self.num_padded

    @property
    def tokens_per_second(self) -> float:
        """Padding left out."""
        return self.num_tokens / self.seconds

    def halve(self, micro_batches: Sequence[Sequence[int]], lengths: Sequence[int]) -> None:
        """Allow half of what the largest of these micro-batches had, for which memory ran out.

        Raises:
            RunError: Every one of them had one row.
        """
        self.max_tokens = halved(self.max_tokens, micro_batches, lengths)
        self.num_halvings += 1

    def told(self) -> dict[str, float]:
        """The metrics of training; what was counted begins anew."""
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
    """Adds up the gradient of a step, and counts in its tally."""

    task: Task[Any]
    tokenizer: PreTrainedTokenizerBase
    model: EncoderWithHeads
    losses: Mapping[str, Loss]
    rows: Sequence[Row]
    numerics: Numerics
    tally: Tally

    def __post_init__(self) -> None:
        self.lengths = [len(row["input_ids"]) for row in self.rows]

    def of(self, rows: Sequence[int], scale: Scale = lambda loss: loss) -> Tensor:
        """The loss of a step; the parameters, without gradients before, get those of the loss that is scaled."""
        shares = self._shares(rows)
        while (loss := self._tried(shares, scale)) is None:
            self._halve(shares)
            shares = self._shares(rows)
        workers.sum_gradients(self.model.parameters())
        self.tally.num_tokens += sum(self.lengths[row] for row in rows)
        self.tally.num_padded += sum(batches.num_padded(each, self.lengths) for share in shares for each in share)
        return loss

    @torch.no_grad()
    def bad_input(self, rows: Sequence[int]) -> LossInputError | None:
        """Why the loss of a step is not finite, where a logit or target of this worker's share is the reason."""
        for batch in self._batches(self._shares(rows)):
            for name, term in self.task.terms(forward(self.model, batch, self.numerics), batch).items():
                if problem := bad_input(self.losses[name].link, term.logits, term.targets, term.mask):
                    return problem
        return None

    def _shares(self, rows: Sequence[int]) -> list[list[list[int]]]:
        return batches.micro_batches(rows, self.lengths, self.tally.max_tokens, num_workers())

    def _batches(self, shares: list[list[list[int]]]) -> list[Batch]:
        """The micro-batches of this worker."""
        collated = (self.task.collate(self.rows, each, self.tokenizer) for each in shares[workers.rank()])
        return [on_device(batch, self.numerics.device) for batch in collated]

    def _tried(self, shares: list[list[list[int]]], scale: Scale) -> Tensor | None:
        """The step's loss and this worker's part of the gradient; none where a worker ran out of memory."""
        mine = self._batches(shares)
        is_whole = all(len(share) == 1 for share in shares)
        if all(loss.is_item_mean for loss in self.losses.values()):
            num_items = {} if is_whole and num_workers() == 1 else self._num_items(mine)
            loss = self._agreed(lambda: self._item_means(mine, num_items, scale))
            return None if loss is None else sum_over_workers(loss)

        states: list[list[Tensor]] = []
        found = self._agreed(lambda: [self._first(batch, is_whole, states) for batch in mine])
        if found is None:
            return None
        loss, gradients = self._loss_of_all(mine, found, scale)
        outputs = found if is_whole else None
        if self._agreed(lambda: self._second(mine, outputs, gradients, states)) is None:
            return None
        return loss

    def _agreed(self, stage: Callable[[], T]) -> T | None:
        """What a stage gives; none on every worker where it runs out of memory on one."""
        found = attempted(stage)
        return None if workers.any_of(found is None, self.numerics.device) else found

    def _item_means(self, mine: list[Batch], num_items: Mapping[str, Tensor], scale: Scale) -> Tensor:
        """One pass: the gradient of a micro-batch needs of the others their number of items alone."""
        total = torch.zeros((), device=self.numerics.device)
        for batch in mine:
            terms = self.task.terms(forward(self.model, batch, self.numerics), batch)
            loss = self._weighted(terms, num_items)
            scale(loss).backward()
            total += loss.detach()
        return total

    def _num_items(self, mine: list[Batch]) -> dict[str, Tensor]:
        """The items of each term in the whole step, known before the encoder runs."""
        counts: dict[str, Tensor] = {}
        for batch in mine:
            terms = self.task.terms(self.model.blank_logits(batch.inputs, batch.targets), batch)
            for name, term in terms.items():
                counts[name] = counts.get(name, 0) + self.losses[name].num_items(term.targets, term.mask)
        return dict(zip(counts, sum_over_workers(torch.stack(list(counts.values()))), strict=True))

    def _first(self, batch: Batch, is_whole: bool, states: list[list[Tensor]]) -> Logits:
        """The logits of a micro-batch: of one that is the whole share with their graph, else to be formed again."""
        states.append(random_state(self.numerics.device))
        with torch.set_grad_enabled(is_whole):
            return forward(self.model, batch, self.numerics)

    def _loss_of_all(self, mine: list[Batch], found: list[Logits], scale: Scale) -> tuple[Tensor, list[Logits]]:
        """The loss of the step from all logits, and its gradient in each micro-batch's."""
        leaves = [{name: each.detach().requires_grad_() for name, each in logits.items()} for logits in found]
        parts = [self.task.terms(logits, batch) for logits, batch in zip(leaves, mine, strict=True)]
        terms = {name: joined(self.losses[name].link, [part[name] for part in parts]) for name in parts[0]}
        loss = self._weighted(terms, {})
        scale(loss).backward()
        gradients = [{name: leaf.grad for name, leaf in logits.items() if leaf.grad is not None} for logits in leaves]
        return loss.detach(), gradients

    def _second(
        self, mine: list[Batch], outputs: list[Logits] | None, gradients: list[Logits], states: list[list[Tensor]]
    ) -> bool:
        """Backward from the gradient in the logits, through logits formed again where their graph was not kept."""
        for number, batch in enumerate(mine):
            if outputs is None:
                set_random_state(states[number], self.numerics.device)
            logits = outputs[number] if outputs is not None else forward(self.model, batch, self.numerics)
            names = gradients[number]
            torch.autograd.backward([logits[name] for name in names], [names[name] for name in names])
        return True

    def _weighted(self, terms: Mapping[str, Term], num_items: Mapping[str, Tensor]) -> Tensor:
        parts = []
        for name, term in terms.items():
            loss = self.losses[name]
            statistics = loss.statistics(term.logits, term.targets, term.mask)
            parts.append(term.weight * step_loss(loss, statistics, num_items=num_items.get(name)))
        return torch.stack(parts).sum()

    def _halve(self, shares: list[list[list[int]]]) -> None:
        """Allow half of what the largest micro-batch had, on every worker."""
        self.model.zero_grad()
        self.tally.halve([each for share in shares for each in share], self.lengths)


def joined(link: Link, terms: Sequence[Term]) -> Term:
    """The term of several micro-batches, padded to other lengths, as one: its items in a row.

    Positions are padded to the longest, and those of the padding are not allowed.
    """
    if len(terms) == 1:
        return terms[0]
    targets_N = torch.cat([term.targets.reshape(-1) for term in terms])
    if link == "position":
        longest = max(term.logits.shape[-1] for term in terms)
        masks = [torch.ones_like(t.logits, dtype=torch.bool) if t.mask is None else t.mask.bool() for t in terms]
        logits_NL, mask_NL = (
            torch.cat([F.pad(e.reshape(-1, e.shape[-1]), (0, longest - e.shape[-1])) for e in each])
            for each in ([term.logits for term in terms], masks)
        )
        return Term(logits_NL, targets_N, mask_NL, terms[0].weight)
    flat = [-1] if link == "sigmoid" else [-1, terms[0].logits.shape[-1]]
    masks = [torch.ones_like(t.targets, dtype=torch.bool) if t.mask is None else t.mask.bool() for t in terms]
    mask_N = None if all(term.mask is None for term in terms) else torch.cat([mask.reshape(-1) for mask in masks])
    return Term(torch.cat([term.logits.reshape(flat) for term in terms]), targets_N, mask_N, terms[0].weight)
