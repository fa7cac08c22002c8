"""The composition root: train, tune, ablate, report, for notebooks and the command line alike."""

from dice_ray.api.cluster import doctor, submit
from dice_ray.api.data import cache_folder, cached, clear_cache, imbalance_report, init, inspect, inspection_folder
from dice_ray.api.library import losses, names, plot_losses, preset_titles
from dice_ray.api.models import Scored, evaluate, export, predict
from dice_ray.api.others import Compared, compare
from dice_ray.api.presets import resolved, resolved_yaml, validate
from dice_ray.api.reports import export_optuna, export_preset, report, ruling, write_report
from dice_ray.api.results import Best, DryRun, Interrupted, Result
from dice_ray.api.search import published_points, resume, tune
from dice_ray.api.study import ablate
from dice_ray.api.tracking import experiments, runs, send_waiting, ui, ui_page
from dice_ray.api.training import train
from dice_ray.run.names import valid_name
from dice_ray.run.tables import Tables

__all__ = [
    "Best",
    "Compared",
    "DryRun",
    "Interrupted",
    "Result",
    "Scored",
    "Tables",
    "ablate",
    "cache_folder",
    "cached",
    "clear_cache",
    "compare",
    "doctor",
    "evaluate",
    "experiments",
    "export",
    "export_optuna",
    "export_preset",
    "imbalance_report",
    "init",
    "inspect",
    "inspection_folder",
    "losses",
    "names",
    "plot_losses",
    "predict",
    "preset_titles",
    "published_points",
    "report",
    "resolved",
    "resolved_yaml",
    "resume",
    "ruling",
    "runs",
    "send_waiting",
    "submit",
    "train",
    "tune",
    "ui",
    "ui_page",
    "valid_name",
    "validate",
    "write_report",
]
