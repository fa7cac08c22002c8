"""Folders as users write them: `~` and `$VARIABLES` are filled in."""

from __future__ import annotations

import os
from pathlib import Path
from string import Template

from dice_ray.errors import DataError


def filled(folder: str, setting: str = "data.source.files.folder") -> Path:
    """A folder with `~` and `$VARIABLES` filled in."""
    try:
        return Path(Template(folder).substitute(os.environ)).expanduser()
    except KeyError as error:
        raise DataError(f"{setting} {folder!r}: the variable {error.args[0]} must be set") from None
    except ValueError as error:
        raise DataError(f"{setting} {folder!r}: {error}; `$$` is a plain dollar sign") from None
