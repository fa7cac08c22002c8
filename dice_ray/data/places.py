"""Paths as users write them: `~` and `$VARIABLES` are expanded."""

from __future__ import annotations

import os
from pathlib import Path
from string import Template

from dice_ray.errors import DataError


def expanded(text: str, setting: str = "data.source.files.folder") -> str:
    """A text with `$VARIABLES` expanded; a variable that is not set is a DataError that names the setting."""
    try:
        return Template(text).substitute(os.environ)
    except KeyError as error:
        raise DataError(f"{setting} {text!r}: the variable {error.args[0]} must be set") from None
    except ValueError as error:
        raise DataError(f"{setting} {text!r}: {error}; write `$$` for a dollar sign") from None


def expand_path(folder: str, setting: str = "data.source.files.folder") -> Path:
    """A path with `~` and `$VARIABLES` expanded."""
    return Path(os.path.expanduser(expanded(folder, setting)))
