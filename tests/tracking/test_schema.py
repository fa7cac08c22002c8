"""The stored names do not change: users' databases stay readable."""

from __future__ import annotations

from typing import get_args

from dice_ray.tracking import schema


def test_the_stored_names_stay() -> None:
    names = {value for name, value in vars(schema).items() if name.isupper() and name not in ("PREFIX", "STEP_METRICS")}
    assert names == {
        "dice_ray.arm",
        "dice_ray.baseline",
        "dice_ray.budget",
        "dice_ray.care",
        "dice_ray.class_weights",
        "dice_ray.collapsed",
        "dice_ray.command",
        "comparison",
        "dice_ray.cautions",
        "dice_ray.compared",
        "dice_ray.compared_by",
        "dice_ray.differing",
        "dice_ray.cores",
        "dice_ray.cpu",
        "dice_ray.data",
        "dice_ray.encoder",
        "dice_ray.encoder_digest",
        "dice_ray.failure",
        "dice_ray.few_items",
        "dice_ray.fresh",
        "dice_ray.git_dirty",
        "dice_ray.gpu",
        "dice_ray.id",
        "dice_ray.kind",
        "dice_ray.looks",
        "dice_ray.loss",
        "dice_ray.metric",
        "dice_ray.objectives",
        "dice_ray.predictions",
        "dice_ray.published",
        "dice_ray.registered",
        "dice_ray.rerun_of",
        "dice_ray.results_version",
        "dice_ray.note",
        "dice_ray.constant",
        "dice_ray.control",
        "dice_ray.searched",
        "dice_ray.shared",
        "dice_ray.seed",
        "dice_ray.state",
        "dice_ray.task",
        "dice_ray.test_per_train",
        "dice_ray.threshold",
        "dice_ray.tuned",
        "dice_ray.variant",
        "dice_ray.variants_are",
        "dice_ray.version",
        "mlflow.experimentKind",
        "mlflow.note.content",
        "mlflow.parentRunId",
        "mlflow.source.git.commit",
        "mlflow.source.name",
        "mlflow.user",
        "classes.csv",
        "config.yaml",
        "data.json",
        "document",
        "items.csv",
        "label_probability",
        "calibrated_probability",
        "left_out.json",
        "plan.yaml",
        "report",
        "texts.csv",
    }
    assert schema.STEP_METRICS == ("loss", "lr", "padding", "tokens_per_second")
    assert get_args(schema.State) == ("done", "pruned", "failed")
