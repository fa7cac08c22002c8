"""Predictions that other programs made, such as an LLM, as arms of a study: scored by its task on its test split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dice_ray.errors import InputError, RefusedError
from dice_ray.files import runs_folder

if TYPE_CHECKING:
    from analysis.frames import Findings
    from dice_ray.config.schema import RunConfig
    from dice_ray.data.records import Splits
    from dice_ray.tasks.base import Scores, Task

    Predicted = Mapping[str, str | Path] | Sequence[str]
    """Files by the arm, `{"llm": "answers.jsonl"}`, or texts ARM=FILE; ARM/SEED for one of several runs."""


def with_predictions(found: Findings, study: str, predictions: Predicted, dev_predictions: Predicted) -> Findings:
    """The findings of a study with an arm for each file of predictions.

    Raises:
        InputError: An arm is not ARM=FILE, is one of the study, or is given twice.
        RefusedError: The study has no single test split.
        DataError: A file cannot be read, or answers fewer than half of the records.
    """
    import pandas as pd

    from analysis.comparison import CONSTANT, comparisons
    from analysis.frames import of_kind, parent_tag, tag_values
    from dice_ray.run.folder import check_digest
    from dice_ray.tracking import schema
    from dice_ray.tuning import plan_file
    from dice_ray.tuning.study import StudyPlan

    files, dev_files = _files(predictions, "predictions"), _files(dev_predictions, "dev-predictions")
    if unknown := [name for name in dev_files if name not in files]:
        raise InputError(f"--dev-predictions must be of an arm of --predictions, got {unknown[0]!r}")
    plan = plan_file.read(runs_folder() / study)
    if not isinstance(plan, StudyPlan):
        raise InputError(f"predictions must be compared with the arms of a study, and {study} is a {plan.kind}")
    if len(comparisons(found)) != 1:
        raise RefusedError(f"predictions must be of one data set, and {study} compares on several, or has no runs yet")
    cells = of_kind(found.frame, "cell")
    names = {name: name.partition("/")[::2] for name in files}
    if taken := {arm for arm, _ in names.values()} & {*cells["arm"], CONSTANT}:
        raise InputError(f"predictions must be of a new arm, and {study} has {', '.join(sorted(taken))}: rename it")
    cell = next(cell for cell in plan.grid().cells if cell.arm == plan.baseline)
    config = plan.config(cell)
    if config.data.test_share is not None:
        raise RefusedError(f"predictions must be of one test split, and each seed of {study} draws its own")
    # Those of the plan's digest: the seed of a cell may draw a training set of its own.
    splits = plan.base(cell.variant).splits()
    check_digest(plan.digest, splits.digest, f"to score predictions, {study}", "predict the data that it now has")
    task = config.task.build(config.task.classes(splits.train))
    metric = parent_tag(found.frame, schema.METRIC)
    place = cells.iloc[0][[name for name in ("tags.data", "tags.encoder", "tags.variant") if name in cells]]
    rows, texts, sentences = list[dict[str, Any]](), dict[str, Mapping[str, str]](), list[str]()
    for name, (arm, seed) in names.items():
        scores, written, said = _scored(task, config, splits, files[name], dev_files.get(name))
        if metric not in (metrics := scores.named("test")):
            raise InputError(f"{files[name]}: {metric}, which {study} compares, needs the probabilities of the answers")
        texts[name] = written
        sentences += [f"{name} ({file}): {each}" for file, each in said]
        tags = {schema.tag_column(schema.PREDICTIONS): files[name].name}
        rows.append(
            {"id": name, "parent": study, "name": f"{study}/{name}", "kind": "cell", "arm": arm, "state": "done"}
            | {"seed": int(seed) if seed else None, **place, **tags}
            | {schema.metric_column(each): value for each, value in metrics.items() if not schema.is_constant(each)}
        )
    frame = found.frame.copy()
    cautions, parent = schema.tag_column(schema.CAUTIONS), of_kind(frame, "study").index[-1]
    known = tag_values(frame.loc[[parent]], schema.CAUTIONS).dropna()
    frame.loc[parent, cautions] = "\n".join([*map(str, known), *sentences])
    added = pd.DataFrame(rows).reindex(columns=[*dict.fromkeys([*frame, *(key for row in rows for key in row)])])
    frame = pd.concat([frame, added.astype({"seed": "Int64"})], ignore_index=True).copy()

    def read(runs: pd.DataFrame, file: str) -> Mapping[str, str]:
        own = {id_: texts[id_][file] for id_ in runs["id"] if file in texts.get(id_, {})}
        return {**found.texts(runs[~runs["id"].isin(list(texts))], file), **own}

    return replace(found, frame=frame, texts=read)


def _scored(
    task: Task[Any], config: RunConfig, splits: Splits, file: Path, dev_file: Path | None
) -> tuple[Scores, dict[str, str], list[tuple[str, str]]]:
    """The scores of a file, the counts of its items and classes as files, and what must be said of which file."""
    from dice_ray.data.inputs import id_column
    from dice_ray.data.records import documents
    from dice_ray.run.trained import count_files
    from dice_ray.tasks.answers import Answers

    def read(path: Path, records: Sequence[Any]) -> Answers:
        return Answers.read(path, task.answer_ids(records, path), id_column(config.data))

    answers, dev = read(file, splits.test), None if dev_file is None else (splits.dev, read(dev_file, splits.dev))
    scores, counts_as = task.score_answers(splits.test, answers, dev)
    said = [(each.file.name, each.sentence(counts_as)) for each in (answers, *(dev or ())[1:])]
    if dev is None and scores.label_probabilities:
        said.append((file.name, "no predictions of dev are given to fit a decision: its probabilities decide at .5."))
    scores = replace(scores, documents=documents(splits.test))
    return scores, count_files("test", scores), [each for each in said if each[1]]


def _files(given: Predicted, option: str) -> dict[str, Path]:
    """The files by arm, or ARM/SEED."""
    if isinstance(given, str):
        given = [given]
    pairs = [*given.items()] if isinstance(given, Mapping) else [tuple(each.partition("=")[::2]) for each in given]
    files: dict[str, Path] = {}
    for name, file in pairs:
        arm, slash, seed = name.partition("/")
        if not arm.strip() or not str(file) or (slash and not seed.isdecimal()):
            raise InputError(f"--{option} must be ARM=FILE, or ARM/SEED=FILE with a number, got {f'{name}={file}'!r}")
        if name in files:
            raise InputError(f"--{option} must give each arm once, or as ARM/SEED=FILE, got {name!r} again")
        files[name] = Path(file)
    for name in files:
        arm, slash, _ = name.partition("/")
        if slash and arm in files:
            raise InputError(f"--{option} must give all runs of {arm} a seed, or it has one run: got {arm} and {name}")
    return files
