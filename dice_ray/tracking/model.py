"""A folder in MLflow's model format: what loads it, and what a stock class of Hugging Face can load of it."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path
from typing import Final

from dice_ray.tracking.store import quiet

MODEL, TOKENIZER = "model", "components/tokenizer"
"""Where the files of a stock class lie in the folder."""
_PIPELINES: Final = {"AutoModelForTokenClassification": ("token-classification", "TokenClassificationPipeline")}
"""The stock classes that a pipeline of transformers runs."""


def write(folder: Path, loader: str, auto_class: str) -> None:
    """Describe a folder: nothing in it is code or a pickle, `loader` is a module of ours that must be installed.

    Args:
        folder: Empty or new.
        loader: The module whose `_load_pyfunc` makes a model of the folder.
        auto_class: What loads `MODEL`; the flavor `transformers` is added where that is a class with a pipeline.
    """
    quiet()
    import mlflow
    from mlflow.models import Model

    wanted = [f"dice-ray=={metadata.version('dice-ray')}"]
    mlflow.pyfunc.save_model(str(folder), loader_module=loader, pip_requirements=wanted)
    if auto_class not in _PIPELINES:
        return
    task, pipeline = _PIPELINES[auto_class]
    model = Model.load(str(folder))
    model.add_flavor(
        "transformers",
        task=task,
        instance_type=pipeline,
        model_binary=MODEL,
        components=["tokenizer"],
        pipeline_model_type=auto_class,
        tokenizer_type="AutoTokenizer",
        transformers_version=metadata.version("transformers"),
    )
    model.save(str(folder / "MLmodel"))


def bind(folder: Path, *, run: str, model: str, location: str) -> None:
    """Note in a folder under which ids MLflow stores it."""
    from mlflow.models import Model

    described = Model.load(str(folder))
    described.run_id, described.model_id, described.artifact_path = run, model, location
    described.save(str(folder / "MLmodel"))
