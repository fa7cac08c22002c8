"""The coefficient of overlap behind dice and Tversky: its sums over a set of items, or the loss of each item.

With u = p (1-p)^decay, v = u or (squared) u^2, and y = 0 or 1, every coefficient is

    (top uy + gamma) / (a v + b uy + c y + gamma)

of the u, v, y of one item (scope `example`) or of their sums over the step (scope `batch`).

Invariant: value and gradient are finite and those of fp64 for logits up to 1e4 in magnitude. Autograd fails at it: the
derivative of (1-p)^decay in p is infinite at p = 1, which multiplied by dp/dz = 0 is NaN (seen from a logit of 16.64 in
fp32, 8.33 in fp16, 6.25 in bf16). In the logit it is finite, so backward is written by hand, in the logit:

    slope = u dL/du,  odds = p/(1-p),  p dL/dp = slope (1 - decay odds),  dL/dz_j = p_j dL/dp_j - p_j sum_k p_k dL/dp_k

1-p of the most probable class t loses all digits if computed as 1 - p, and underflows at a gap of 104 between the
logits. So log(1-p_t) comes from the logits of the other classes, whose share r_j = p_j/(1-p_t), a softmax without t, is
kept for backward, where the odds of t cancel (`_to_logits`). Two classes need none of this: there du/dz has a closed
form in the margin (`_AdjustedMargin`). With gamma 0, v is at least the smallest normal number (`Form.floored`), since
p^2 underflows at a logit of -52, and 0/0, which counts as 1, stands for a class without items. Functions work in place
where a tensor of N x C is not used again: memory traffic, not arithmetic, is their cost.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from dice_ray.losses.items import Items, is_readable

_LEAST, _MOST = 1e-20, 1e20
"""Between which the sum of exp(z), and 1 - p, have all their digits in fp32 without the maximum being subtracted."""


@dataclass(frozen=True)
class Form:
    """The constants of a coefficient (see the module): numerator, denominator, and how u and v are computed.

    Attributes:
        power: 2 for v = u^2 (squared), 1 for v = u.
        is_stopped: Whether the gradient treats (1-p)^decay as a constant.
    """

    gamma: float
    top: float
    a: float
    b: float
    c: float
    power: int = 1
    decay: float = 0.0
    is_stopped: bool = False

    def floored(self, v: Tensor, keep: Tensor | None) -> Tensor:
        """v, and with gamma 0 at least the smallest normal number where an item counts."""
        if self.gamma > 0:
            return v
        v = v.clamp(min=torch.finfo(v.dtype).tiny)
        return v if keep is None else v * keep

    def coefficient(self, uy: Tensor, v: Tensor, y: Tensor) -> Tensor:
        """The coefficient; 0/0 counts as 1."""
        above, below = self.top * uy + self.gamma, self.a * v + self.c * y + self.gamma
        if self.b:
            below = below + self.b * uy
        if self.gamma > 0:
            return above / below
        # Where the coefficient is 0 for any v, the derivative in uy, 1/v, would overflow.
        return torch.where(below == 0, 1, above / below.where(above > 0, 1))


def set_sums(items: Items, form: Form, *, with_background: bool, num_labels: int = 1) -> Tensor:
    """`sums_3C`: sum uy, sum v, sum y of each class; for two classes, of class 1 only unless `with_background`.

    With several labels, whose items lie side by side, the two classes of each label have sums of their own.
    """
    if items.is_two_class:
        columns = [_two_class(items, form, label) for label in ((0, 1) if with_background else (1,))]
        if num_labels > 1:
            sums = [[each_N.reshape(-1, num_labels).sum(0) for each_N in column] for column in columns]
            return torch.cat([torch.stack(column) for column in sums], 1)
        return torch.stack([torch.stack([each_N.sum() for each_N in column]) for column in columns], 1)
    return _set_sums(items.logits, items.targets, _keep(items), form)


def item_losses(items: Items, form: Form, *, with_background: bool) -> Tensor:
    """`loss_C`: 1 - coefficient of each item, totalled over items per class; the classes are those of `set_sums`."""
    if items.is_two_class:
        columns = [_two_class(items, form, label) for label in ((0, 1) if with_background else (1,))]
        # Items that do not count have u = y = 0 and therefore no loss: gamma/gamma = 1, and 0/0 counts as 1.
        return torch.stack([(1 - form.coefficient(*column)).sum() for column in columns])
    return _item_losses(items.logits, items.targets, _keep(items), form)


def _two_class(items: Items, form: Form, label: int) -> tuple[Tensor, Tensor, Tensor]:
    """`uy_N`, `v_N` and `y_N` of class `label` of two, 0 where an item does not count."""
    u_N = _adjusted_margin(items.logits if label else -items.logits, form.decay, form.is_stopped)
    y_N = (items.targets == label).to(u_N.dtype)
    keep_N = items.valid if items.kept is None else items.kept[:, label]
    if keep_N is not None:
        u_N, y_N = u_N * keep_N, y_N * keep_N
    return u_N * y_N, form.floored(u_N**form.power, keep_N), y_N


def _keep(items: Items) -> Tensor | None:
    """`keep_NC`, or `keep_N1` for all classes alike: 1 where an item counts, else 0; None if all do.

    Numbers, since on a CPU a product takes a fifth of the time of `masked_fill`. What they multiply is finite.
    """
    if items.kept is not None or items.valid is None:
        return items.kept
    return items.valid[:, None].to(torch.promote_types(items.logits.dtype, torch.float32))


class _AdjustedMargin(torch.autograd.Function):
    """u of two classes; du/dz = u (q - decay p) with q = sigmoid(-z), and u q if the weight is stopped."""

    @staticmethod
    def forward(ctx: Any, margin_N: Tensor, decay: float, is_stopped: bool) -> Tensor:
        p_N = torch.sigmoid(margin_N)
        u_N = (F.logsigmoid(-margin_N) * decay).exp_().mul_(p_N) if decay else p_N
        ctx.decay = 0.0 if is_stopped else decay
        ctx.save_for_backward(margin_N, p_N, u_N)
        return u_N

    @staticmethod
    def backward(ctx: Any, grad_N: Tensor) -> tuple[Tensor, None, None]:
        margin_N, p_N, u_N = ctx.saved_tensors
        return grad_N * u_N * torch.sigmoid(-margin_N).sub_(p_N, alpha=ctx.decay), None, None


class _SetSums(torch.autograd.Function):
    """`sums_3C` of several classes, with slopes uy and power v."""

    @staticmethod
    def forward(ctx: Any, logits_NC: Tensor, targets_N: Tensor, keep_NC: Tensor | None, form: Form) -> Tensor:
        targets_N1 = targets_N[:, None]
        u_NC, p_NC, dominant = _adjusted(logits_NC, keep_NC, form)
        uy_N1 = u_NC.gather(1, targets_N1)
        y_N1 = torch.ones_like(uy_N1) if keep_NC is None else _of_targets(keep_NC, targets_N1)
        v_NC = form.floored(u_NC if form.power == 1 else u_NC.square_(), keep_NC)
        v_C = v_NC.sum(0)
        uy_C, y_C = (torch.zeros_like(v_C).scatter_add_(0, targets_N, sum_N1[:, 0]) for sum_N1 in (uy_N1, y_N1))
        # The sums are taken: the same memory now holds what the slopes are made of in backward.
        ctx.power = form.power
        if dominant:
            ctx.power *= _add_decay(v_NC, dominant.rest_NC, form.decay)
            uy_N1 *= 1 + form.decay - form.decay / dominant.rest_NC.gather(1, targets_N1)
        ctx.dtype, ctx.decay = logits_NC.dtype, form.decay
        ctx.save_for_backward(v_NC, uy_N1, targets_N1, p_NC, *(dominant.saved if dominant else ()))
        return torch.stack((uy_C, v_C, y_C))

    @staticmethod
    def backward(ctx: Any, grad_3C: Tensor) -> tuple[Tensor, None, None, None]:
        slope_NC, slope_N1, targets_N1, p_NC, *dominant = ctx.saved_tensors
        slope_N1 = slope_N1 * grad_3C[0].index_select(0, targets_N1[:, 0])[:, None]
        slope_NC = (slope_NC * (ctx.power * grad_3C[1])).scatter_add_(1, targets_N1, slope_N1)
        return _to_logits(slope_NC, p_NC, ctx.decay, dominant).to(ctx.dtype), None, None, None


class _ItemLosses(torch.autograd.Function):
    """`loss_C` of several classes: where y = 0 the loss is s = a v / (a v + gamma), with slope power s (1-s)."""

    @staticmethod
    def forward(ctx: Any, logits_NC: Tensor, targets_N: Tensor, keep_NC: Tensor | None, form: Form) -> Tensor:
        targets_N1 = targets_N[:, None]
        u_NC, p_NC, dominant = _adjusted(logits_NC, keep_NC, form)
        positive_N1, slope_N1 = _own_class(u_NC.gather(1, targets_N1), form)
        if keep_NC is not None:
            positive_N1 = positive_N1 * _of_targets(keep_NC, targets_N1)
        s_NC = form.floored(u_NC if form.power == 1 else u_NC.square_(), keep_NC).mul_(form.a)
        # With gamma 0, s is 1, or 0 where an item does not count: 0/0 counts as coefficient 1.
        s_NC = s_NC.div_(s_NC + form.gamma) if form.gamma > 0 else s_NC.sign_()
        loss_C = s_NC.scatter_(1, targets_N1, positive_N1).sum(0)
        slope_NC = s_NC.addcmul_(s_NC, s_NC, value=-1).scatter_(1, targets_N1, slope_N1 / form.power)
        ctx.power = form.power
        if dominant:
            ctx.power *= _add_decay(slope_NC, dominant.rest_NC, form.decay)
        ctx.dtype, ctx.decay = logits_NC.dtype, form.decay
        ctx.save_for_backward(slope_NC, p_NC, *(dominant.saved if dominant else ()))
        return loss_C

    @staticmethod
    def backward(ctx: Any, grad_C: Tensor) -> tuple[Tensor, None, None, None]:
        slope_NC, p_NC, *dominant = ctx.saved_tensors
        return _to_logits(slope_NC * (ctx.power * grad_C), p_NC, ctx.decay, dominant).to(ctx.dtype), None, None, None


_adjusted_margin: Callable[[Tensor, float, bool], Tensor] = _AdjustedMargin.apply
_set_sums: Callable[[Tensor, Tensor, Tensor | None, Form], Tensor] = _SetSums.apply
_item_losses: Callable[[Tensor, Tensor, Tensor | None, Form], Tensor] = _ItemLosses.apply


def _own_class(u_N1: Tensor, form: Form) -> tuple[Tensor, Tensor]:
    """The loss of an item for its own class (y = 1), and its slope; that is 0 if the item does not count (u = 0)."""
    av_N1, bu_N1 = form.a * u_N1**form.power, form.b * u_N1
    above_N1, below_N1 = form.top * u_N1 + form.gamma, av_N1 + bu_N1 + form.c + form.gamma
    slope_N1 = above_N1 * (form.power * av_N1 + bu_N1) - form.top * u_N1 * below_N1
    loss_N1 = 1 - form.coefficient(u_N1, u_N1**form.power, torch.ones_like(u_N1))
    return loss_N1, torch.where(below_N1 == 0, 0, slope_N1 / below_N1**2)


@dataclass
class _Dominant:
    """For differentiating (1-p)^decay: 1-p of all classes, 1 for the most probable one (t), and more for backward.

    Attributes:
        saved: The label of t, p_t, 1 - p_t, and the sum of e over the other classes.
    """

    rest_NC: Tensor
    saved: tuple[Tensor, Tensor, Tensor, Tensor]


def _add_decay(slope_NC: Tensor, rest_NC: Tensor, decay: float) -> float:
    """Multiply the slopes in place by 1 - decay odds, except for a factor, which is returned.

    With odds = 1/(1-p) - 1 that is (1 + decay) (1 - decay/(1 + decay) / (1-p)), one operation on N x C.
    """
    slope_NC.addcdiv_(slope_NC, rest_NC, value=-decay / (1 + decay))
    return 1 + decay


def _counted(u_NC: Tensor, keep_NC: Tensor | None) -> Tensor:
    """`u_NC`, 0 where an item does not count; in place."""
    return u_NC if keep_NC is None else u_NC.mul_(keep_NC)


def _of_targets(keep_NC: Tensor, targets_N1: Tensor) -> Tensor:
    """`keep_N1` for the targets' classes."""
    return keep_NC if keep_NC.shape[1] == 1 else keep_NC.gather(1, targets_N1)


def _adjusted(logits_NC: Tensor, keep_NC: Tensor | None, form: Form) -> tuple[Tensor, Tensor, _Dominant | None]:
    """`u_NC`, 0 where an item does not count; and what its gradient needs.

    That is `p_NC`; or, if the gradient has a decay term, `_Dominant` and `e_NC`, which is 0 for the most probable class
    and proportional to p for the others: p underflows where the logit of the first is far above theirs.
    """
    if form.decay == 0:
        p_NC = logits_NC.softmax(-1, torch.promote_types(logits_NC.dtype, torch.float32))
        return _counted(p_NC.clone(), keep_NC), p_NC, None
    top = _small_without_top(logits_NC) if is_readable(logits_NC) and len(logits_NC) else None
    label_N1, p_NC, e_NC, others_N1, top_N1, log_rest_N1 = top or _without_top(logits_NC)
    rest_NC = 1 - p_NC
    u_NC = (rest_NC.log_() if form.is_stopped else rest_NC.log()).mul_(form.decay).exp_().mul_(p_NC)
    u_NC.scatter_(1, label_N1, (log_rest_N1 * form.decay).exp_().mul_(top_N1))
    if form.is_stopped:
        return _counted(u_NC, keep_NC), p_NC.scatter_(1, label_N1, top_N1), None
    return _counted(u_NC, keep_NC), e_NC, _Dominant(rest_NC, (label_N1, top_N1, log_rest_N1.exp_(), others_N1))


def _without_top(logits_NC: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """`label_N1` of the most probable class t; `p_NC` and `e_NC` without it, that is 0 for t; the sum of e; p_t; and
    log(1 - p_t).
    """
    logits_NC = logits_NC.to(torch.promote_types(logits_NC.dtype, torch.float32))
    largest_N1, label_N1 = logits_NC.max(-1, keepdim=True)
    zero_N1 = torch.zeros_like(largest_N1)
    e_NC = logits_NC.scatter(1, label_N1, zero_N1 - math.inf)
    second_N1 = e_NC.amax(-1, keepdim=True)
    # exp is slow for -inf on a CPU.
    e_NC.sub_(second_N1).scatter_(1, label_N1, zero_N1).exp_().scatter_(1, label_N1, zero_N1)
    others_N1 = e_NC.sum(-1, keepdim=True)
    log_odds_N1 = second_N1 - largest_N1 + others_N1.log()
    p_NC = e_NC * (torch.sigmoid(log_odds_N1) / others_N1)
    return label_N1, p_NC, e_NC, others_N1, torch.sigmoid(-log_odds_N1), F.logsigmoid(log_odds_N1)


def _small_without_top(logits_NC: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor] | None:
    """As `_without_top`, in half of its time on a CPU; None if exp overflows or underflows, or for too little beside t.

    e is p here. At most one p rounds to 1, and t may be any class where none does: to find t like this takes a third of
    the time of `max`.
    """
    p_NC = logits_NC.to(torch.promote_types(logits_NC.dtype, torch.float32)).exp()
    sum_N1 = p_NC.sum(-1, keepdim=True)
    if not (sum_N1.amin() > _LEAST and sum_N1.amax() < _MOST):
        return None
    p_NC *= sum_N1.reciprocal()
    classes_C = torch.arange(p_NC.shape[1], dtype=p_NC.dtype)
    label_N1 = p_NC.round().mul_(classes_C).sum(-1, keepdim=True).long()
    top_N1 = p_NC.gather(1, label_N1)
    rest_N1 = p_NC.scatter_(1, label_N1, torch.zeros_like(top_N1)).sum(-1, keepdim=True)
    if rest_N1.amin() < _LEAST:
        return None
    return label_N1, p_NC, p_NC, rest_N1, top_N1, rest_N1.log()


def _to_logits(slope_NC: Tensor, p_NC: Tensor, decay: float, dominant: Sequence[Tensor]) -> Tensor:
    """The gradient in the logits from p dL/dp, in place: slope - p sum(slope).

    With a decay term, the slope of the most probable class lacks the factor 1 - decay odds. Its odds cancel:
    slope (1 - decay odds) (1-p) is slope (1 - p - decay p), and p_j slope decay odds is r_j slope decay p.
    """
    if not dominant:
        return slope_NC.addcmul_(p_NC, slope_NC.sum(-1, keepdim=True), value=-1)
    label_N1, top_N1, rest_N1, others_N1 = dominant
    of_top_N1 = slope_NC.gather(1, label_N1)
    # A tensor of zeros takes a third of the time of the number 0.
    sum_N1 = slope_NC.scatter_(1, label_N1, torch.zeros_like(of_top_N1)).sum(-1, keepdim=True)
    slope_NC.addcmul_(p_NC, (decay * top_N1 * of_top_N1 - rest_N1 * (sum_N1 + of_top_N1)) / others_N1)
    return slope_NC.scatter_(1, label_N1, of_top_N1 * (rest_N1 - decay * top_N1) - top_N1 * sum_N1)
