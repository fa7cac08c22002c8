"""The address under which MLflow loads a registered model: it is stored with each model, so it stays."""

from dice_ray.run.packaging import load_pyfunc as _load_pyfunc

__all__ = ["_load_pyfunc"]
