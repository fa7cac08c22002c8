"""A model folder in MLflow's format: its description is written here, and the ids under which MLflow stores it."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dice_ray.tracking.store import quiet

if TYPE_CHECKING:
    import pandas as pd

MODEL, TOKENIZER = "model", "components/tokenizer"
"""Where the files that a class of transformers loads lie in the folder."""
PIPELINES: Final = {
    "AutoModelForTokenClassification": ("token-classification", "TokenClassificationPipeline"),
    "AutoModelForSequenceClassification": ("text-classification", "TextClassificationPipeline"),
}
"""The auto classes that a pipeline of transformers can run, with its task and class."""


def write(
    folder: Path,
    loader: str,
    auto_class: str,
    params: Mapping[str, str],
    example: Mapping[str, Any],
    id_column: str,
    predicted: pd.DataFrame | None,
) -> None:
    """Describe a folder as a model of MLflow; it holds neither code nor a pickle, so dice_ray must be installed.

    Args:
        folder: Empty or new.
        loader: The module whose `_load_pyfunc` loads the model from the folder.
        auto_class: The class that loads `MODEL`; where it has a pipeline, the flavor `transformers` is added.
        params: The defaults of the parameters of a prediction; MLflow passes on no other parameter.
        example: A row to predict: its columns are those of the signature.
        id_column: The column of the ids, which may be missing if the example has none.
        predicted: Its prediction, if that is a frame: its columns are those of the signature's outputs.
    """
    quiet()
    import mlflow
    import pandas as pd
    from mlflow.models import Model, ModelSignature, infer_signature
    from mlflow.types import ColSpec, DataType, ParamSchema, ParamSpec, Schema
    from mlflow.types.schema import AnyType

    rows = pd.DataFrame([example])
    inferred = infer_signature(rows, predicted)
    inputs = [each for each in inferred.inputs.inputs if each.name != id_column]
    inputs.append(ColSpec(AnyType(), id_column, required=id_column in example))  # ids may be text or numbers
    specs = [ParamSpec(name, DataType.string, default) for name, default in params.items()]
    signature = ModelSignature(Schema(inputs), inferred.outputs)
    if specs:
        signature.params = ParamSchema(specs)
    requirements = [f"dice-ray=={metadata.version('dice-ray')}"]
    mlflow.pyfunc.save_model(
        str(folder), loader_module=loader, pip_requirements=requirements, signature=signature, input_example=rows
    )
    if auto_class not in PIPELINES:
        return
    task, pipeline = PIPELINES[auto_class]
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
    """Write into a folder's description the ids and the location under which MLflow stores it."""
    from mlflow.models import Model

    description = Model.load(str(folder))
    description.run_id, description.model_id, description.artifact_path = run, model, location
    description.save(str(folder / "MLmodel"))
