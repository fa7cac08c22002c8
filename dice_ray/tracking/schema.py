"""The names stored with a run: its tags, kinds and states, the metrics derived from another, and the artifacts."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

State: TypeAlias = Literal["done", "pruned", "failed"]
Status: TypeAlias = Literal["FINISHED", "FAILED", "KILLED"]
"""MLflow's status of a run that ended."""
_Sibling: TypeAlias = Literal["best", "kept", "constant", "tuned", "threshold", "collapsed", "pr_auc"]

PREFIX: Final = "dice_ray."

ID: Final = "dice_ray.id"
"""Our id of a run, by which it is found: MLflow assigns an id of its own and accepts no other."""
KIND: Final = "dice_ray.kind"
"""`run`, trained alone; `sweep`, its `trial`s, and a `rerun` of the best ones with other seeds; `study` and `cell`."""
ARM: Final = "dice_ray.arm"
VARIANT: Final = "dice_ray.variant"
"""On a cell: the variant its arm is run on (data, encoder, an altered training set); absent if a study has none."""
SEED: Final = "dice_ray.seed"
TASK: Final = "dice_ray.task"
DATA: Final = "dice_ray.data"
PUBLISHED: Final = "dice_ray.published"
"""The data set of the paper that the data of a run are, whole and in the published split; absent for all other data."""
LOSS: Final = "dice_ray.loss"
ENCODER: Final = "dice_ray.encoder"
ENCODER_DIGEST: Final = "dice_ray.encoder_digest"
"""Digest of the content of an encoder that was loaded from a folder."""
FRESH: Final = "dice_ray.fresh"
"""Which parts of the model start at random: the heads, and the encoder too if it is the tiny one."""
TEST_PER_TRAIN: Final = "dice_ray.test_per_train"
"""On a run whose test split was drawn at random: the number of test records per training record of that draw."""
FEW_ITEMS: Final = "dice_ray.few_items"
"""On a run, sweep or study: the warning that dev or test has few items of its rarest class; absent if it has enough."""
STATE: Final = "dice_ray.state"
FAILURE: Final = "dice_ray.failure"
"""Why a trial or cell failed."""
COLLAPSED: Final = "dice_ray.collapsed"
"""`true` for a run that predicts only one class in its best evaluation, or on test where it is scored there."""
SEARCHED: Final = "dice_ray.searched"
"""On a trial: the paths that the search chose, separated by spaces; their values are among the parameters."""
TUNED: Final = "dice_ray.tuned"
"""On a cell: a sentence that names the trial whose settings its arm has; absent if the arm was not tuned."""
SHARED: Final = "dice_ray.shared"
"""On a cell: the trial whose settings, except those of the loss, all arms of the study have, and the trial's loss;
absent if the arms share no settings that were searched."""
CONTROL: Final = "dice_ray.control"
"""On a cell of a control: the name of the arm that it is the control of. In a study with tuned arms the control has
the tuned settings of that arm with the baseline's loss. In a study with shared settings it is the baseline with equal
class weights, and the tag names the baseline."""
CLASS_WEIGHTS: Final = "dice_ray.class_weights"
"""On a run, trial or cell whose loss weighs the classes: the smallest and the largest weight, with their classes."""
RERUN_OF: Final = "dice_ray.rerun_of"
"""On a rerun: the id of the trial whose configuration it repeats with another seed."""
VARIANTS_ARE: Final = "dice_ray.variants_are"
"""On a study: `data` if each variant is compared by itself, `settings` if they are draws of one search."""
BUDGET: Final = "dice_ray.budget"
"""On a study of drawn settings: the number of them of which the best by dev is compared."""
BASELINE: Final = "dice_ray.baseline"
"""On a study: the arm that the others are compared with."""
LOOKS: Final = "dice_ray.looks"
"""On a study: the numbers of seeds after which its arms are compared, separated by spaces; one if it is fixed."""
CARE: Final = "dice_ray.care"
"""On a study: the smallest difference that matters to the user, in points of the metric; absent for none."""
THRESHOLD: Final = "dice_ray.threshold"
"""On a study: `tuned` or `untuned`, the threshold at which its arms are compared; absent in older studies."""
COMMAND: Final = "dice_ray.command"
"""On a study: the command that runs it, without its seeds."""
COMPARISON: Final = "comparison"
"""`KIND` of a run that holds the outcome of comparing the runs that other programs made in its experiment."""
COMPARED: Final = "dice_ray.compared"
"""On the parent of a comparison of runs that other programs made: where they are from. `COMMAND` makes it again."""
COMPARED_BY: Final = "dice_ray.compared_by"
"""On the same parent: the column of the arms."""
CAUTIONS: Final = "dice_ray.cautions"
"""On the same parent: what its user must know of the runs, a sentence a line."""
PREDICTIONS: Final = "dice_ray.predictions"
"""On a cell of a report, never stored with a run: the file of predictions that another program made."""
DIFFERING: Final = "dice_ray.differing"
"""On a cell of such a comparison: the settings that differ between its arms besides what is compared."""
METRIC: Final = "dice_ray.metric"
"""On a sweep, study or run: the metric that decides, `dev/f1`; of a study that on test, `test/f1`."""
OBJECTIVES: Final = "dice_ray.objectives"
"""On a multi-objective sweep: the metrics, separated by spaces, with a leading `-` for one that is minimised."""
RESULTS_VERSION: Final = "dice_ray.results_version"
CONSTANT: Final = "dice_ray.constant"
"""Prefix of `.<metric>`: a metric that has one value in the whole run, which the reader returns as a metric."""
OWN_NOTE: Final = "dice_ray.note"
"""On a run, sweep or study: the note that the user gave it; `NOTE` has it too, before what we add."""

REGISTERED: Final = "dice_ray.registered"
"""Prefix of `.<registered name>`: the version under which the run's model is registered."""
GIT_DIRTY: Final = "dice_ray.git_dirty"
"""Whether the working directory had uncommitted changes."""
VERSION: Final = "dice_ray.version"
"""Prefix of `.<package>`."""
CPU: Final = "dice_ray.cpu"
CORES: Final = "dice_ray.cores"
GPU: Final = "dice_ray.gpu"
"""The number and names of the GPUs, `none` on a machine without one."""

PARENT: Final = "mlflow.parentRunId"
NOTE: Final = "mlflow.note.content"
GIT_COMMIT: Final = "mlflow.source.git.commit"
USER: Final = "mlflow.user"
SOURCE: Final = "mlflow.source.name"
EXPERIMENT_KIND: Final = "mlflow.experimentKind"
"""Tags of MLflow, which its pages show."""

STEP_METRICS: Final = ("loss", "lr", "padding", "tokens_per_second")
"""Metrics of single steps between evaluations, `step/loss`; those of evaluations are `train/...` and `dev/...`."""

CONFIG_FILE: Final = "config.yaml"
"""Artifact of a run: its resolved configuration."""
PLAN_FILE: Final = "plan.yaml"
"""Artifact of a sweep or study: its plan."""
DATA_FILE: Final = "data.json"
"""Artifact of a run, sweep or study: what was loaded, and what of it was skipped."""
LEFT_OUT_FILE: Final = "left_out.json"
"""Artifact of a study: the variants and arms that do not fit together and are not run, and why."""
ITEMS_FILE: Final = "items.csv"
"""Artifact in the folder of a split (`test/items.csv`): the counts of each record, the probability of its label where
it has one label, and its document if known."""
LABEL_PROBABILITY: Final = "label_probability"
"""Column of `ITEMS_FILE`."""
CALIBRATED_PROBABILITY: Final = "calibrated_probability"
"""Column of `ITEMS_FILE`: the same probability after calibration, of a run with one."""
DOCUMENT: Final = "document"
"""Column of `ITEMS_FILE`, which a run stores where the documents of its records are known."""
TEXTS_FILE: Final = "texts.csv"
"""Artifact in the folder of a split: the text of each record; stored with the best run, if `tracking.text` is true."""
CLASSES_FILE: Final = "classes.csv"
"""Artifact in the folder of a split (`test/classes.csv`): the counts of each class."""
REPORT_FOLDER: Final = "report"
"""Folder of artifacts of a sweep or study: its report."""


def tag_column(tag: str) -> str:
    """The column of a tag in the frame of runs that `reader.read` returns; the prefix is left out.

    >>> tag_column(VARIANT), param_column("loss.focal.gamma"), metric_column("test/f1")
    ('tags.variant', 'params.loss.focal.gamma', 'metrics.test/f1')
    """
    return f"tags.{tag.removeprefix(PREFIX)}"


def param_column(path: str) -> str:
    """The column of a parameter, as `tag_column`."""
    return f"params.{path}"


def metric_column(metric: str) -> str:
    """The column of a metric, as `tag_column`."""
    return f"metrics.{metric}"


def is_constant(metric: str) -> bool:
    """Whether a metric has one value in the whole run: it is stored as a tag, since MLflow draws every metric.

    >>> is_constant("dev/constant_f1"), is_constant("dev/f1")
    (True, False)
    """
    name = metric.rpartition("/")[2]
    return name.startswith("constant_") or name == "threshold_support"


def sibling(metric: str, kind: _Sibling) -> str:
    """The metric of a kind that belongs to another one of the same run and split.

    - `best`: its best value, which the retained checkpoint has; the metric itself is stored at each evaluation.
    - `kept`: its value at the retained checkpoint, where another metric decides.
    - `constant`: that of the constant predictor, which has no threshold to tune.
    - `tuned`: that at the threshold tuned on dev; `threshold`: this threshold, of a run whose task has one.
    - `collapsed`: 1 if the run predicts only one class, else 0.
    - `pr_auc`: the area under the precision-recall curve, independent of the threshold; for two classes only.

    >>> sibling("dev/f1", "best"), sibling("test/f1_tuned", "constant"), sibling("test/f1", "tuned")
    ('dev/best_f1', 'test/constant_f1', 'test/f1_tuned')
    >>> sibling("test/f1", "threshold")
    'test/threshold'
    """
    split, slash, name = metric.rpartition("/")
    names = {
        "best": f"best_{name}",
        "kept": f"kept_{name}",
        "constant": f"constant_{name.removesuffix('_tuned')}",
        "tuned": f"{name}_tuned",
    }
    return f"{split}{slash}{names.get(kind, kind)}"
