"""The names under which `tuning` knows the events and the screen of a driver."""

from dice_ray.run.driver import Screen as Screen
from dice_ray.run.driver import TrialCounts as Progress

__all__ = ["Progress", "Screen"]
