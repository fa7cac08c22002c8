"""What one run stores in MLflow from its start to its end, the same for a run trained alone and for a trial or cell.

The metrics and tags that are derived when a run ends (the best value, the other metrics of the retained checkpoint,
whether the model collapsed) are formed here and nowhere else: tables and reports rely on their meaning.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from dice_ray.settings import Flat
from dice_ray.tracking import schema
from dice_ray.tracking.writer import Writer

NUM_STEP_POINTS: Final = 200
"""About how many steps of a run are stored between its evaluations."""


class RunRecord:
    """One run in MLflow, written through a writer that other runs may share.

    Args:
        writer: Of the run's experiment.
        id_: Our id of the run. A run that another process opened is resumed by opening it again.
    """

    def __init__(self, writer: Writer, id_: str) -> None:
        self._writer, self._id = writer, id_
        self._last_step = 0
        self._constants: dict[str, str] = {}

    def opened(
        self,
        name: str,
        params: Flat,
        tags: Mapping[str, str],
        config_yaml: str | None = None,
        *,
        parent: str | None = None,
    ) -> None:
        """The run starts or resumes; a run whose settings cannot be resolved has no `config_yaml`."""
        self._writer.open(self._id, name=name, params=params, tags=tags, parent=parent)
        if config_yaml is not None:
            self._writer.text(self._id, schema.CONFIG_FILE, config_yaml)

    def data(self, description: str, digest: str, source_name: str, source: Mapping[str, Any]) -> None:
        """The run uses this data set."""
        self._writer.data(self._id, description, digest, source_name, source)

    def evaluated(self, step: int, metrics: Mapping[str, float]) -> None:
        """The run was evaluated after this many optimizer steps."""
        values, constants = without_constants(metrics)
        self._writer.metrics(self._id, step, values)
        if new := {name: value for name, value in constants.items() if self._constants.get(name) != value}:
            self._writer.tags(self._id, new)
            self._constants |= new

    def steps(self, step: int, num_steps: int, metrics: Mapping[str, float]) -> None:
        """The run has done `step` of `num_steps` optimizer steps; about `NUM_STEP_POINTS` of these calls are stored.

        Args:
            step: Optimizer steps done.
            num_steps: Optimizer steps of the whole run.
            metrics: At least `schema.STEP_METRICS`; they are stored as `step/<name>`, and others are ignored.
        """
        if step - self._last_step >= num_steps / NUM_STEP_POINTS:
            self._last_step = step
            self._writer.metrics(self._id, step, {f"step/{name}": metrics[name] for name in schema.STEP_METRICS})

    def ended(
        self,
        status: schema.Status,
        *,
        objective: str,
        curve: Sequence[tuple[int, float]],
        metrics: Sequence[Mapping[str, float]],
        kept: Iterable[str] = (),
        test: Mapping[str, float] | None = None,
        tags: Mapping[str, str] | None = None,
        texts: Mapping[str, str] | None = None,
    ) -> None:
        """The run ended; without an evaluation only its tags, texts and status are stored.

        Args:
            status: As MLflow calls it.
            objective: The metric on dev that chose the checkpoint, `dev/f1`.
            curve: The step of each evaluation, and its score: the value of `objective`.
            metrics: All metrics of each evaluation, in the order of `curve`; the first of equal scores is the best.
            kept: Metrics whose value at the best evaluation is stored as `schema.kept_metric`, where it has them.
            test: The scores on test, of a run that is scored there.
            tags: Further tags, such as the state.
            texts: Further artifacts by their path.
        """
        final_tags = dict(tags or {})
        if curve:
            (step, score), checkpoint = max(zip(curve, metrics, strict=True), key=lambda evaluation: evaluation[0][1])
            final = {schema.best_metric(objective): score}
            final |= {schema.kept_metric(name): checkpoint[name] for name in kept if name in checkpoint}
            # The step of their checkpoint is also that of a later `evaluate`, whose values thus replace these: MLflow's
            # latest value is the one of the highest step.
            self.evaluated(step, {**final, **(test or {})})
            # On test if the run is scored there, else at its best evaluation on dev.
            scores, split = (test, "test/") if test else (checkpoint, objective)
            final_tags[schema.COLLAPSED] = "true" if scores.get(schema.collapsed_metric(split)) else "false"
        for file, content in (texts or {}).items():
            self._writer.text(self._id, file, content)
        if final_tags:
            self._writer.tags(self._id, final_tags)
        self._writer.end(self._id, status)


def without_constants(metrics: Mapping[str, float]) -> tuple[dict[str, float], dict[str, str]]:
    """The metrics that change in a run, and the others as tags.

    >>> without_constants({"dev/f1": 0.5, "dev/constant_f1": 0.25})
    ({'dev/f1': 0.5}, {'dice_ray.constant.dev/constant_f1': '0.25'})
    """
    values = {name: value for name, value in metrics.items() if not schema.is_constant(name)}
    constants = {
        f"{schema.CONSTANT}.{name}": repr(float(value)) for name, value in metrics.items() if name not in values
    }
    return values, constants
