"""The digest of whole splits, which the readers make in parts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dice_ray.data.records import Digest, Record


def digest(splits: Iterable[Sequence[Record]]) -> str:
    result = Digest()
    for records in splits:
        result.add(records)
        result.end()
    return str(result)
