"""The parent run of a sweep or study in MLflow: what its tags, parameters and files say when it starts."""

from __future__ import annotations

from collections.abc import Mapping

from dice_ray.config.schema import RunConfig
from dice_ray.run.build import objective
from dice_ray.settings import nested
from dice_ray.tracking import schema
from dice_ray.tracking.run_record import RunRecord
from dice_ray.tracking.writer import Writer
from dice_ray.tuning import plan_file
from dice_ray.tuning.plan import RESULTS_VERSION, SweepPlan
from dice_ray.tuning.samplers import signed_metric
from dice_ray.tuning.study import StudyPlan


def opened(plan: SweepPlan | StudyPlan, writer: Writer, more_tags: Mapping[str, str]) -> None:
    """Open the parent run, or resume it, and describe its experiment."""
    metric = objective(plan.base(), "dev" if isinstance(plan, SweepPlan) else "test")
    tags = {schema.KIND: plan.kind, schema.METRIC: metric, schema.RESULTS_VERSION: str(RESULTS_VERSION)}
    if isinstance(plan, StudyPlan):
        tags |= {schema.BASELINE: plan.baseline, schema.VARIANTS_ARE: plan.variants_are}
        tags |= {schema.COMMAND: plan.command} if plan.command else {}
    elif plan.objectives:
        tags[schema.OBJECTIVES] = " ".join(signed_metric(name) for name in plan.objectives)
    left_out = {"name", "kind", "layers", "arms", "variants", "tuned_settings", "controls", "code", "command", "asked"}
    left_out |= {"shared_settings"}
    parent = RunRecord(writer, plan.name)
    parent.opened(plan.name, plan.model_dump(mode="json", exclude=left_out), {**tags, **more_tags})
    writer.describe(plan.name, description(plan, metric))
    # A report names the command that reruns all that it shows, not only what was asked for last.
    whole = plan.model_copy(update={"asked": None}) if isinstance(plan, StudyPlan) else plan
    writer.text(plan.name, schema.PLAN_FILE, plan_file.as_yaml(whole))
    for variant, digest in plan.digests.items():
        if digest:
            record_data(parent, plan.base(variant), digest)


def description(plan: SweepPlan | StudyPlan, metric: str) -> str:
    """The description of the experiment, in Markdown; without numbers, since a sweep or study may grow."""
    data = ", ".join(dict.fromkeys(plan.base(variant).data_name for variant in plan.digests))
    if isinstance(plan, StudyPlan):
        what = f"Ablation study on {data}: arms compared with `{plan.baseline}` over the same seeds, by {metric}."
        holds = "the score of each arm and the verdict; its children are the runs of each arm and seed"
    else:
        by = ", ".join(plan.objectives) or metric
        what = f"Sweep on {data}: a search of the space `{plan.space}` with the sampler `{plan.sampler}`, by {by}."
        holds = "the best score and the summary; its children are the trials"
    return f"{what} The run `{plan.name}` has {holds}. `dice-ray report {plan.name}` writes the report."


def record_data(record: RunRecord, config: RunConfig, digest: str) -> None:
    """The run uses the data of this configuration, which have this digest."""
    source = config.data.source
    record.data(config.data_name, digest, source.name, nested(source))
