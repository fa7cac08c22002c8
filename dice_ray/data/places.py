"""Paths as users write them: `~` and `$VARIABLES` are expanded."""

from __future__ import annotations

import os
from pathlib import Path
from string import Template

from dice_ray.errors import DataError


def expand_path(folder: str, setting: str = "data.source.files.folder") -> Path:
    """A path with `~` and `$VARIABLES` expanded; a variable that is not set is a DataError that names the setting."""
    try:
        return Path(Template(folder).substitute(os.environ)).expanduser()
    except KeyError as error:
        raise DataError(f"{setting} {folder!r}: the variable {error.args[0]} must be set") from None
    except ValueError as error:
        raise DataError(f"{setting} {folder!r}: {error}; write `$$` for a dollar sign") from None
