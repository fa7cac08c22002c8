"""Where the packages shipped beside dice_ray lie; a package of the user's that stands in their way is named."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from dice_ray.errors import ShadowedError


def folder_of(package: str) -> Path:
    """The folder of `search_spaces` or `analysis`.

    Raises:
        ShadowedError: Another file or folder of that name comes first on Python's import path.
    """
    ours = Path(__file__).resolve().parents[1] / package
    spec = importlib.util.find_spec(package)
    found = Path(spec.origin).resolve() if spec and spec.origin else None
    if found != ours / "__init__.py":
        raise ShadowedError(
            f"dice_ray needs its own package {package} in {ours}, but Python finds {found} first; "
            "rename that one, or work in another folder"
        )
    return ours
