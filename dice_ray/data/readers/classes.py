"""Class labels as Hugging Face stores them: numbers in the rows, their names in the features."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeAlias

Names: TypeAlias = Mapping[str, tuple[str, ...]]
"""The names of the classes of each column that has such."""


def names_in(features: Mapping[str, Any]) -> Names:
    """The names in features, as `Features.to_dict` and the metadata of a Parquet file spell them."""
    found = {column: _names(feature) for column, feature in features.items()}
    return {column: names for column, names in found.items() if names}


def names_in_metadata(metadata: Mapping[bytes, bytes] | None) -> Names:
    """The names in the metadata that `datasets` writes into a Parquet file; other files have none."""
    try:
        features = json.loads((metadata or {})[b"huggingface"])["info"]["features"]
    except (KeyError, TypeError, ValueError):
        return {}
    return names_in(features) if isinstance(features, dict) else {}


def named_classes(value: Any, names: tuple[str, ...]) -> Any:
    """The names that stand for a number or a list of numbers; -1 alone is no label.

    Raises:
        LookupError: A number is that of no class.
    """
    if isinstance(value, list):
        return [_name(number, names) for number in value]
    return None if value is None or value == -1 else _name(value, names)


def _name(number: Any, names: tuple[str, ...]) -> str:
    if type(number) is not int or not 0 <= number < len(names):
        raise LookupError(number)
    return names[number]


def _names(feature: Any) -> tuple[str, ...]:
    """The names of a class label or of a list of such."""
    match feature:
        case {"_type": "ClassLabel", "names": [*names]}:
            return tuple(map(str, names))
        case {"_type": "List" | "LargeList" | "Sequence", "feature": inner} | [inner]:
            return _names(inner)
    return ()
