"""Labels as part of a metric's name: readable, allowed by MLflow, and different for different labels."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from typing import Final

LONGEST: Final = 180
"""MLflow allows 250 characters for the whole name."""
TAKEN: Final = frozenset({"tuned"})
"""Labels whose metric would have the name of another one, `f1_tuned`."""


def metric_name_part(label: str) -> str:
    """A label as part of a metric's name; characters that MLflow refuses are named between colons.

    MLflow allows letters, digits, `_`, `-`, `.`, spaces, colons, and slashes, which it takes for folders. A name that
    would be too long for it is cut, and ends in a hash of the label.

    >>> metric_name_part("PRP$"), metric_name_part("Shipping & returns"), metric_name_part("geo-loc")
    ('PRP:dollar sign:', 'Shipping :ampersand: returns', 'geo-loc')
    """
    part = re.sub(r"[^\w. -]", _named, label)
    if label in TAKEN:
        part = f":x{ord(label[0]):x}:{label[1:]}"
    if len(part) <= LONGEST:
        return part
    return f"{part[: LONGEST - 10].rstrip(':')}. {hashlib.sha256(label.encode()).hexdigest()[:8]}"


def _named(found: re.Match[str]) -> str:
    character = found[0]
    return f":{unicodedata.name(character, f'x{ord(character):x}').lower()}:"
