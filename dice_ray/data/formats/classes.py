"""Class labels as `datasets` stores them: numbers in the rows, and their names in the features."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeAlias

ClassNames: TypeAlias = Mapping[str, tuple[str, ...]]
"""The class names of each column of class labels."""


def class_names(features: Mapping[str, Any]) -> ClassNames:
    """The class names in features, as `Features.to_dict` or the metadata of a Parquet file write them."""
    return {column: names for column, feature in features.items() if (names := _names(feature))}


def class_names_in_metadata(metadata: Mapping[bytes, bytes] | None) -> ClassNames:
    """The class names in the metadata that `datasets` writes into a Parquet file; empty for other files."""
    try:
        features = json.loads((metadata or {})[b"huggingface"])["info"]["features"]
    except (KeyError, TypeError, ValueError):
        return {}
    return class_names(features) if isinstance(features, dict) else {}


def to_class_names(value: Any, names: tuple[str, ...]) -> Any:
    """Replace a class number, or a list of them, by names; -1 outside a list is no label, as GLUE's test sets have it.

    Raises:
        LookupError: A number is not that of a class.
    """
    if isinstance(value, list):
        return [_name(number, names) for number in value]
    return None if value is None or value == -1 else _name(value, names)


def _name(number: Any, names: tuple[str, ...]) -> str:
    # `type() is`, as True would be class 1.
    if type(number) is not int or not 0 <= number < len(names):
        raise LookupError(number)
    return names[number]


def _names(feature: Any) -> tuple[str, ...]:
    """The class names of a feature that is a class label or a list of them, else ()."""
    match feature:
        case {"_type": "ClassLabel", "names": [*names]}:
            return tuple(map(str, names))
        case {"_type": "List" | "LargeList" | "Sequence", "feature": inner} | [inner]:
            return _names(inner)
    return ()
