"""Losses given as objects: the settings that name them, for other processes and for a resumed run or study."""

from __future__ import annotations

import base64
import hashlib
import io
import pickle
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from dice_ray.errors import InputError, first_line
from dice_ray.run.names import check_lists, stored_code
from dice_ray.user_code import address_of

if TYPE_CHECKING:
    from torch import nn

    GivenLoss: TypeAlias = str | Callable[..., Any] | nn.Module
    """The name of a loss, a function of logits and targets, or a module of them."""

_STORED_LOSS = '''"""A loss that was given as an object: its classes are imported, its values loaded without other code.

It needs the file of its class, whose digest was {digest}.
"""

import base64
import importlib
import io
import operator
import sys

import torch

sys.path.append({root!r})
classes = [operator.attrgetter(name)(importlib.import_module(module)) for module, name in {classes!r}]
with torch.serialization.safe_globals(classes):
    loss = torch.load(io.BytesIO(base64.b64decode({saved!r})), map_location="cpu", weights_only=True)
'''


def with_loss(settings: Mapping[str, Any] | Sequence[str], loss: GivenLoss) -> Mapping[str, Any] | Sequence[str]:
    """The settings, with a loss that is given by its name or as an object."""
    from dice_ray.config.load import assignment

    added = settings_of(loss)
    if isinstance(settings, Mapping):
        return {**settings, **added}
    check_lists(settings=settings)
    return [*settings, *(assignment(path, value) for path, value in added.items())]


def settings_of(loss: GivenLoss) -> dict[str, str]:
    """The settings of a loss that is given by its name or as an object.

    Raises:
        InputError: Other processes cannot load it, or it sums over the items.
    """
    import torch

    if isinstance(loss, str):
        return {"loss": loss}
    if getattr(loss, "reduction", None) == "sum":
        raise InputError("a loss must be a mean over items or have a value for each, got one with reduction 'sum'")
    address = _stored(loss) if isinstance(loss, torch.nn.Module) else address_of(loss)
    return {"loss.custom.target": address, "loss.custom.form": "function"}


def _stored(loss: nn.Module) -> str:
    """The address of a module of torch, which is stored by its content and that of the file of its class."""
    import torch

    source, _, name = address_of(type(loss)).rpartition(":")
    root, digest = "", ""
    if source.endswith(".py"):
        num_parts = type(loss).__module__.count(".") + 1
        root, digest = str(Path(source).parents[num_parts - 1]), hashlib.sha256(Path(source).read_bytes()).hexdigest()
    classes = {type(each): (type(each).__module__, type(each).__qualname__) for each in loss.modules()}
    written = io.BytesIO()
    try:
        torch.save(loss, written)
        with torch.serialization.safe_globals([*classes]):
            torch.load(io.BytesIO(written.getvalue()), weights_only=True)
    except (pickle.PickleError, AttributeError, TypeError) as error:
        raise InputError(
            f"a loss that is given as an object must hold modules, tensors, numbers and texts alone, since other "
            f"processes load it without running other code, and {name} does not: {_reason(error)}; give a function, or "
            "the class by its address (loss.custom.target)"
        ) from error
    content = _STORED_LOSS.format(
        digest=digest[:12] or f"torch {torch.__version__}",
        root=root,
        classes=sorted(classes.values()),
        saved=base64.b64encode(written.getvalue()).decode(),
    )
    return f"{stored_code(name, content)}:loss"


def _reason(error: Exception) -> str:
    """What an object holds that it must not: torch names it in the middle of its advice to load all objects."""
    found = re.search(r"Unsupported (?:global: GLOBAL|class) (\S+)", str(error))
    return f"it holds {found[1]}" if found else first_line(error)
