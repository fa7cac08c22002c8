"""Reports of experiments, which are stored with the parent run, and exports of sweeps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from dice_ray.api import library
from dice_ray.api.predictions import with_predictions
from dice_ray.errors import InputError, RunError, UnknownNameError, reason_of
from dice_ray.files import check_output, runs_folder, write_output
from dice_ray.run.names import LONGEST, TRAIN_EXPERIMENT, check_lists

if TYPE_CHECKING:
    import pandas as pd

    from analysis.frames import Findings
    from analysis.report import Report
    from analysis.verdict.requirement import Ruling
    from dice_ray.api.predictions import Predicted


def report(*names: str, predictions: Predicted = (), dev_predictions: Predicted = ()) -> Report:
    """The report of a sweep, a study, or the runs trained alone; or of several of them, side by side.

    Args:
        names: Sweeps, studies, comparisons, or `train` for all runs of `dice-ray train`.
        predictions: As in `compare`.
        dev_predictions: As in `compare`.
    """
    library.folder_of("analysis")
    from analysis import report as reports

    check_lists(names=names)
    if not names or len(set(names)) < len(names):
        raise InputError(f"a report must be of one or more different experiments, got {', '.join(names) or 'none'}")
    if (predictions or dev_predictions) and len(names) > 1:
        raise InputError(f"predictions must be compared with one study, got {', '.join(names)}")
    by_name = {name: findings(name) for name in names}
    if predictions or dev_predictions:
        return reports.report(with_predictions(by_name[names[0]], names[0], predictions, dev_predictions))
    return reports.side_by_side(by_name) if len(names) > 1 else reports.report(by_name[names[0]])


def write_report(made: Report, names: Sequence[str], out: Path | None = None) -> list[Path]:
    """Write a report, and store that of a single sweep or study with its parent run in MLflow.

    Args:
        made: The report of these names.
        names: As they were given to `report`.
        out: The folder to write to; by default the folder `report` of the sweep or study, or one of all of them.

    Returns:
        The files, the page first.

    Raises:
        InputError: It is a file, or a file in it was not written by a report.
    """
    from dice_ray.tracking import schema

    out = None if out is None else Path(out)
    if out is not None and out.exists() and not out.is_dir():
        raise InputError(f"a report must be written to a folder, and {out} is a file")
    joined = "_and_".join(names)
    if len(joined.encode()) > LONGEST:  # file systems would refuse it
        joined = f"{names[0]}_and_{len(names) - 1}_more"
    written = made.write(out or runs_folder() / joined / schema.REPORT_FOLDER)
    # Predictions are not stored with the study that they are compared with.
    has_predictions = made.findings is not None and schema.tag_column(schema.PREDICTIONS) in made.findings.frame
    if len(names) == 1 and made.origins and stored_comparison(names[0]) is None and not has_predictions:
        from dice_ray.tracking.writer import Writer

        store_outcome(names[0], lambda: made.findings or findings(names[0]))
        with Writer(names[0]) as writer:
            for file in written:
                if file.suffix != ".png":  # artifacts are stored as text, and each figure is stored as SVG
                    writer.text(
                        made.origins[0].name, f"{schema.REPORT_FOLDER}/{file.name}", file.read_text(encoding="utf-8")
                    )
    return written


def store_outcome(name: str, read: Callable[[], Findings], folder: Path | None = None) -> None:
    """Store the scores and the summary of a sweep or study with its parent run; nothing where MLflow lacks results.

    Args:
        name: Of the sweep or study.
        read: Returns its results.
        folder: Keeps what MLflow cannot store now, until a later command sends it.
    """
    from dice_ray.tracking import schema
    from dice_ray.tracking.writer import Writer

    library.folder_of("analysis")
    from analysis import outcome

    try:
        found = read()
        metrics, note = outcome.metrics(found), outcome.note(found, name)
    except (RunError, UnknownNameError):
        return
    with Writer(name, folder=folder) as writer:
        # MLflow replaces no value: the outcome of more runs is that of a later step.
        writer.metrics(name, int(found.frame["parent"].notna().sum()), metrics)
        writer.tags(name, {schema.NOTE: note})


def findings(name: str) -> Findings:
    """The runs of an experiment as MLflow holds them now; their files and curves are read on first use."""
    library.folder_of("analysis")
    from analysis.frames import Findings
    from dice_ray.run.folder import holds_run
    from dice_ray.tracking import reader
    from dice_ray.tuning.ranking import ranked_in_frame

    if (compared := stored_comparison(name)) is not None:
        return Findings(compared, lambda runs, file: reader.texts(runs[runs["artifacts"].notna()], file))
    try:
        frame = reader.read(name)
    except UnknownNameError:
        if holds_run(runs_folder() / name):
            command = f"`dice-ray report {TRAIN_EXPERIMENT}`"
            raise InputError(
                f"{name} is a run of `dice-ray train`, all of which are in one report: {command}"
            ) from None
        raise
    trials = ranked_in_frame(frame)
    return Findings(
        frame,
        reader.texts,
        lambda: reader.curves(name),
        ranked=tuple(trial.id for trial in trials),
        rerun_scores={trial.id: trial.rerun_scores for trial in trials if trial.rerun_scores},
    )


def stored_comparison(name: str) -> pd.DataFrame | None:
    """The frame of a comparison of runs that other programs made; None where the name is not that of one."""
    from dice_ray.run.folder import COMPARISON

    file = runs_folder() / name / COMPARISON
    if not file.is_file():
        return None
    import pandas as pd

    try:
        return pd.read_parquet(file)
    except (OSError, ValueError) as error:
        raise RunError(f"{file} must be as dice_ray wrote it, but is damaged: {reason_of(error)}") from error


def stored_comparisons() -> dict[str, pd.DataFrame]:
    """The frame of each comparison in the folder of runs, by its name; one that is damaged is left out."""
    from dice_ray.run.folder import COMPARISON

    found = {}
    for file in sorted(runs_folder().glob(f"*/{COMPARISON}")):
        with suppress(RunError):
            if (frame := stored_comparison(file.parent.name)) is not None:
                found[file.parent.name] = frame
    return found


def ruling(made: Report, requirement: str) -> Ruling:
    """Whether a study, or a comparison of runs that other programs made, meets a requirement, for a gate in CI.

    Args:
        made: Its report.
        requirement: `better`: an arm is shown to be better than the baseline. `different`: an arm is shown to be better
            or worse. `not-worse:MARGIN`: every arm is shown to be worse by less than the margin, in points of the
            metric (without a margin, the study's `care`), collapses no more often, and has no failed runs.

    Raises:
        InputError: There is no such requirement, or it cannot be asked of this report.
    """
    from analysis.verdict import requirement as required

    if made.findings is None:
        raise InputError("a requirement must be of the report of one experiment, and this one is of several")
    return required.ruling(made.findings, requirement)


def export_preset(sweep: str, out: Path | None = None) -> str:
    """The best configuration of a sweep as a commented preset for `train`.

    Args:
        sweep: Name of a sweep, or SWEEP/TRIAL for the configuration of one of its trials.
        out: File to write; by default the preset is printed.
    """
    from dice_ray.tuning.export import preset

    if out is not None:
        out = Path(out)
        if out.exists() or out.suffix not in (".yaml", ".yml"):
            found = f"{out}, which exists" if out.exists() else out
            raise InputError(f"a preset must be written to a new file that ends in .yaml, got {found}")
        check_output(out)
    name, _, trial = sweep.partition("/")
    text = preset(runs_folder() / name, trial or None)
    if out is not None:
        write_output(out, text)
    return text


def export_optuna(sweep: str, file: str | Path) -> int:
    """Write a sweep as an Optuna study in an SQLite file, which optuna-dashboard opens; returns the number of trials.

    Args:
        sweep: Name of a sweep.
        file: New SQLite file to write, such as study.db.
    """
    from dice_ray.tuning.export import optuna_study

    if (file := Path(file)).exists():
        raise InputError(f"an Optuna study must be written to a new file, got {file}")
    check_output(file)
    library.folder_of("search_spaces")
    return optuna_study(runs_folder() / sweep, file)
