"""Which loss, with which settings, on my data, and is the difference real?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dice_ray.api import Tables, ablate, compare, evaluate, export, predict, report, resume, train, tune

__all__ = ["Tables", "ablate", "compare", "evaluate", "export", "predict", "report", "resume", "train", "tune"]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__} - {"Any", "TYPE_CHECKING", "annotations"})


def __getattr__(name: str) -> Any:
    if name in __all__:
        from dice_ray import api

        return getattr(api, name)
    raise AttributeError(f"module 'dice_ray' has no attribute {name!r}")
