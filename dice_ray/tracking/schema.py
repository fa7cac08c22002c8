"""The names that are stored with a run: tags, kinds, states, and how a metric's relatives are called."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

Kind: TypeAlias = Literal["run", "sweep", "trial", "rerun", "study", "cell"]
"""A run trained alone; a sweep, its trials, and the best ones with other seeds; a study and its cells."""
State: TypeAlias = Literal["done", "pruned", "failed"]
Status: TypeAlias = Literal["FINISHED", "FAILED", "KILLED"]
"""How a run may end, in MLflow's words."""

PREFIX: Final = "dice_ray."

ID: Final = "dice_ray.id"
"""Our id of a run; MLflow gives its own, and a run is found again by this tag."""
KIND: Final = "dice_ray.kind"
ARM: Final = "dice_ray.arm"
VARIANT: Final = "dice_ray.variant"
"""On a cell: what its arm is run on (data, encoder, an altered training set); absent where a study has no variants."""
SEED: Final = "dice_ray.seed"
TASK: Final = "dice_ray.task"
DATA: Final = "dice_ray.data"
LOSS: Final = "dice_ray.loss"
ENCODER: Final = "dice_ray.encoder"
ENCODER_DIGEST: Final = "dice_ray.encoder_digest"
"""Of the content of an encoder that lies in a folder."""
FRESH: Final = "dice_ray.fresh"
"""What of the model starts at random: the heads, and the encoder too if it is the tiny one."""
TEST_PER_TRAIN: Final = "dice_ray.test_per_train"
"""On a run whose test split was drawn: how many test records there are for each training record as it was drawn."""
STATE: Final = "dice_ray.state"
FAILURE: Final = "dice_ray.failure"
"""Why a trial or cell failed."""
COLLAPSED: Final = "dice_ray.collapsed"
"""`true` for a run that predicts one class only, in its best evaluation."""
SEARCHED: Final = "dice_ray.searched"
"""On a trial: the paths that the search chose, joined by spaces; their values are among the parameters."""
TUNED: Final = "dice_ray.tuned"
"""On a cell: the trial that its arm has its settings of, in words; absent where the arm was not tuned."""
RERUN_OF: Final = "dice_ray.rerun_of"
"""On a rerun: the id of the trial whose configuration it has, with another seed."""
BASELINE: Final = "dice_ray.baseline"
"""On a study: the arm that the others are compared to."""
METRIC: Final = "dice_ray.metric"
"""On a sweep, study or run: the metric that is maximised, `dev/f1`."""
OBJECTIVES: Final = "dice_ray.objectives"
"""On a sweep for several: the metrics, joined by spaces, those to be low with a `-` before them."""
RESULTS_VERSION: Final = "dice_ray.results_version"

REGISTERED: Final = "dice_ray.registered"
"""With a dot and a model's name behind it: the version under which the run's model is registered."""
GIT_DIRTY: Final = "dice_ray.git_dirty"
"""Whether the user's folder had changes that its commit does not hold."""
VERSION: Final = "dice_ray.version"
"""With a dot and the name of a package behind it."""
CPU: Final = "dice_ray.cpu"
CORES: Final = "dice_ray.cores"
GPU: Final = "dice_ray.gpu"
"""What of the machine, `none` where there is none."""

PARENT: Final = "mlflow.parentRunId"
GIT_COMMIT: Final = "mlflow.source.git.commit"
USER: Final = "mlflow.user"
SOURCE: Final = "mlflow.source.name"
EXPERIMENT_KIND: Final = "mlflow.experimentKind"
"""Names of MLflow's own, which its pages show."""


OF_STEPS: Final = ("loss", "lr", "padding", "tokens_per_second")
"""Metrics of single steps between evaluations, `step/loss`: those of evaluations are `train/...` and `dev/...`."""


def best_metric(metric: str) -> str:
    """The best value so far, that of the checkpoint kept; the metric itself is stored as it goes.

    >>> best_metric("dev/f1")
    'dev/best_f1'
    """
    return _with_name(metric, "best_{}")


def kept_metric(metric: str) -> str:
    """Another metric's value at the checkpoint kept.

    >>> kept_metric("dev/recall")
    'dev/kept_recall'
    """
    return _with_name(metric, "kept_{}")


def constant_metric(metric: str) -> str:
    """The score of the constant predictor by the same metric.

    >>> constant_metric("test/f1")
    'test/constant_f1'
    """
    return _with_name(metric, "constant_{}")


def tuned_metric(metric: str) -> str:
    """The score of the same run at the threshold tuned on dev.

    >>> tuned_metric("test/f1")
    'test/f1_tuned'
    """
    return _with_name(metric, "{}_tuned")


def collapsed_metric(metric: str) -> str:
    """1 where the run predicts one class only on the metric's split.

    >>> collapsed_metric("test/f1")
    'test/collapsed'
    """
    return _with_name(metric, "collapsed")


def pr_auc_metric(metric: str) -> str:
    """How well the same scores rank, whatever the threshold; only two classes have it.

    >>> pr_auc_metric("test/f1")
    'test/pr_auc'
    """
    return _with_name(metric, "pr_auc")


def _with_name(metric: str, form: str) -> str:
    split, slash, name = metric.rpartition("/")
    return f"{split}{slash}{form.format(name)}"
