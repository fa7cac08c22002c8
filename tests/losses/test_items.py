"""Invalid logits, targets and masks raise an error that names the row and the allowed values."""

from __future__ import annotations

import pytest
import torch

from dice_ray.errors import LossInputError
from dice_ray.losses import CrossEntropyLoss, DiceLoss
from dice_ray.losses.items import bad_input, flatten_items
from dice_ray.terms import Link

ZEROS = torch.zeros(4, 3)
TARGETS = torch.tensor([0, 1, 2, 0])


@pytest.mark.parametrize(
    ("link", "logits", "targets", "mask", "message"),
    [
        ("softmax", ZEROS, TARGETS[:3], None, r"Targets must have the shape \(4,\) for logits of \(4, 3\).*got \(3,\)"),
        ("softmax", ZEROS, TARGETS, torch.ones(4, 1), r"mask must have the shape \(4,\).*got \(4, 1\)"),
        ("softmax", ZEROS[:, :1], TARGETS, None, r"two or more entries on the last axis, got logits of \(4, 1\)"),
        ("softmax", ZEROS, TARGETS + 1, None, r"in 0 to 2 for 3 classes.*got 3 in row 2"),
        ("softmax", ZEROS, TARGETS - 1, None, r"in 0 to 2 for 3 classes.*got -1 in row 0"),
        ("softmax", ZEROS, TARGETS.float(), None, "must be integers, got torch.float32"),
        (
            "sigmoid",
            ZEROS[:, :1],
            TARGETS,
            None,
            r"Targets must have the shape \(4, 1\).*one logit per item.*got \(4,\)",
        ),
        ("sigmoid", ZEROS[:, 0], TARGETS, None, r"in 0 to 1 for 2 classes.*got 2 in row 2"),
        ("position", ZEROS, TARGETS, torch.ones(4), r"mask must have the shape \(4, 3\).*logits_NL.*got \(4,\)"),
    ],
)
def test_shapes_and_targets_that_do_not_fit(
    link: Link, logits: torch.Tensor, targets: torch.Tensor, mask: torch.Tensor | None, message: str
) -> None:
    with pytest.raises(LossInputError, match=message):
        CrossEntropyLoss(link)(logits, targets, mask)


def test_an_ignored_target_need_not_be_in_range() -> None:
    mask = torch.tensor([True, True, False, True])
    targets = torch.tensor([0, 1, 99, -100])
    assert CrossEntropyLoss()(ZEROS, targets, mask) == CrossEntropyLoss()(ZEROS[:2], targets[:2])


def test_an_invalid_logit_is_reported_with_its_index_in_the_batch() -> None:
    logits = torch.zeros(2, 3, 4)
    logits[1, 2, 3] = torch.inf
    targets = torch.zeros(2, 3, dtype=torch.long)
    assert DiceLoss()(logits, targets).isnan()
    assert str(bad_input("softmax", logits, targets)) == "Logits must be finite, got inf in row (1, 2), column 3."


def test_a_target_at_a_forbidden_position() -> None:
    mask = torch.tensor([[True, False, True]]).expand(4, 3)
    assert CrossEntropyLoss("position")(ZEROS, TARGETS, mask).isnan()
    assert "an allowed position of 0 to 2" in str(bad_input("position", ZEROS, TARGETS, mask))
    assert "got 1 in row 1" in str(bad_input("position", ZEROS, TARGETS, mask))


def test_a_forbidden_position_has_no_probability_and_no_gradient() -> None:
    logits = torch.zeros(1, 3, requires_grad=True)
    loss = CrossEntropyLoss("position")(logits, torch.tensor([0]), torch.tensor([[True, False, True]]))
    loss.backward()
    assert loss.item() == pytest.approx(0.693147)
    assert logits.grad is not None
    assert logits.grad.tolist() == [[-0.5, 0, 0.5]]


def test_no_items_have_no_loss_with_a_mask_too() -> None:
    """Finds torch's own error about a shape that zero elements do not determine."""
    none = torch.zeros(0, 5)
    assert float(CrossEntropyLoss("position")(none, torch.zeros(0, dtype=torch.long), none.bool())) == 0


def test_several_labels_are_as_many_two_class_items() -> None:
    logits, targets = torch.randn(5, 3), torch.randint(2, (5, 3))
    items = flatten_items("sigmoid", logits, targets, None)
    assert items.logits.shape == (15,)
    assert CrossEntropyLoss("sigmoid").num_items(targets) == 15
    expected = torch.nn.functional.binary_cross_entropy_with_logits(logits, targets.float())
    torch.testing.assert_close(CrossEntropyLoss("sigmoid")(logits, targets), expected)
