"""Compare runs that other programs made, of a table or an MLflow experiment, by the statistics of a study."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dice_ray.api import library
from dice_ray.api.predictions import with_predictions
from dice_ray.api.reports import findings, stored_comparison
from dice_ray.errors import InputError, RefusedError, RunError, first_line
from dice_ray.files import runs_folder, whole_output, write_atomically
from dice_ray.run.names import by_name, check_name

if TYPE_CHECKING:
    import pandas as pd

    from analysis.frames import Findings
    from analysis.report import Report

_ENDINGS: Final = (".csv", ".tsv", ".parquet", ".jsonl")


@dataclass(frozen=True, repr=False, eq=False)
class Compared:
    """A comparison of runs that other programs made.

    Attributes:
        name: Of its folder in that of all runs, where it is stored; of its report otherwise.
        findings: The runs as those of a study.
    """

    name: str
    findings: Findings

    @property
    def verdict(self) -> str:
        """The outcome in one sentence, on several places in one for each."""
        from analysis.verdict import verdicts

        made = verdicts(self.findings)
        return "\n".join(f"On {each.place}: {each.headline}" if len(made) > 1 else each.headline for each in made)

    @property
    def table(self) -> pd.DataFrame:
        """The arms: mean, interval, seeds, and difference to the baseline with its interval and corrected p."""
        import pandas as pd

        from analysis.comparison import comparisons
        from analysis.tables.study import comparison

        places = [each.place for each in comparisons(self.findings)]
        tables = [table.data for table in comparison(self.findings)]
        if len(tables) == 1:
            return tables[0]
        return pd.concat([table.assign(place=place) for place, table in zip(places, tables, strict=True)])

    def report(self) -> Report:
        """Verdict, tables and figures, to show in a notebook or to write."""
        return self._report

    @cached_property
    def _report(self) -> Report:
        from analysis import report as reports

        return reports.report(self.findings)

    def __repr__(self) -> str:
        return f"{self.name}: {self.verdict}"

    def _repr_html_(self) -> str:
        return self.report()._repr_html_()


def compare(
    source: str | Path | pd.DataFrame,
    *,
    metric: str | None = None,
    arm: str | None = None,
    seed: str | None = None,
    baseline: str | None = None,
    by: str | None = None,
    where: Mapping[str, str] | Sequence[str] = (),
    lower_is_better: bool | None = None,
    predictions: Mapping[str, str | Path] | Sequence[str] = (),
    dev_predictions: Mapping[str, str | Path] | Sequence[str] = (),
    name: str | None = None,
    write_back: bool = False,
) -> Compared:
    """Compare runs that any program made, each with one score, by the statistics of a study.

    Args:
        source: MLflow experiment (its name or id), or a file of a table with a row for each run: .csv, .tsv, .parquet
            or .jsonl; with predictions, the name of a study.
        metric: Column of the scores, as test_f1 or metrics.test_f1; several of one run are its last value.
        arm: Column of what is compared, as loss or params.loss; guessed where not given.
        seed: Column by which runs of different arms are paired; guessed where not given.
        baseline: Arm that the others are compared with; by default one that is named so, else the first.
        by: Column by whose values the runs are compared separately, such as the data set.
        where: Value that a column must have, as COLUMN=VALUE; other runs are left out.
        lower_is_better: Lower values of the metric are better; by default its name decides, and the report says how.
        predictions: Predictions of another program for the test split of a study, such as an LLM's, as an arm of it,
            as ARM=FILE; ARM/SEED=FILE for one of several runs. The study says the metric, and what is compared.
        dev_predictions: Their predictions for the dev split, as ARM=FILE, which tune their decision.
        name: Name under which the comparison is stored in the folder of runs, with its report; in Python, nothing is
            stored without one.
        write_back: Store the outcome in the MLflow experiment too, as a run with scores, verdict and report.

    Raises:
        InputError: The runs cannot be compared, or arm or seed are not clear.
        UnknownNameError: There is no such experiment, column or baseline.
    """
    library.folder_of("analysis")
    from analysis.others import Columns, findings_of

    if name is not None:
        _check_is_free(check_name(name))
    if predictions or dev_predictions:
        if any(each not in (None, (), []) for each in (metric, arm, seed, baseline, by, where, lower_is_better)):
            raise InputError("with predictions, the study says what is compared: leave out the options on columns")
        if write_back or not isinstance(source, str):
            raise InputError(f"predictions must be compared with a study, and are not written back, got {source}")
        found = with_predictions(findings(source), source, predictions, dev_predictions)
        return _stored(Compared(name or source, found), name)
    experiment, table, row_names, told = _read(source)
    if metric is None:
        known = ", ".join(map(str, table.select_dtypes("number"))) or "none"
        raise InputError(f"a comparison needs the column of its scores: give it by --metric; of numbers: {known}")
    if write_back and (experiment is None or name is None):
        raise InputError("write_back must have an MLflow experiment to write to, and a name for the comparison")
    chosen = {column: str(value) for column, value in by_name("where", "COLUMN=VALUE", where).items()}
    asked = Columns(metric, arm, seed, baseline, by, chosen, lower_is_better)
    command = [] if told is None else ["dice-ray", "compare", told, *(["--name", name] if name else [])]
    shown = "a table of Python" if told is None else f"the experiment {experiment}" if experiment else told
    found = findings_of(table, asked, name or "comparison", shown, command, row_names)
    compared = _stored(Compared(name or "comparison", found), name)
    if write_back and experiment is not None:
        _write_back(compared, experiment)
    return compared


def _check_is_free(name: str) -> None:
    """Raise a RefusedError where a comparison of this name would hide another folder, or an experiment in MLflow."""
    from dice_ray.tracking.reader import experiments

    folder = runs_folder() / name
    if folder.exists() and stored_comparison(name) is None and any(folder.iterdir()):
        raise RefusedError(f"{folder} holds something else than a comparison: choose another --name")
    try:
        is_experiment = name in experiments()
    except RunError:  # there is no store, or it is away
        return
    if is_experiment:
        raise RefusedError(f"MLflow has an experiment {name}, which the comparison would hide: choose another --name")


def _read(source: str | Path | pd.DataFrame) -> tuple[str | None, pd.DataFrame, Sequence[str], str | None]:
    """The name of the experiment if it is one, the runs, their names if a file has lines, and the source as a command
    gives it.
    """
    import pandas as pd

    if isinstance(source, pd.DataFrame):
        return None, source, (), None
    file = Path(source)
    if file.is_dir():
        raise InputError(
            f"runs must be in one file with a row for each, or in an MLflow experiment; {file} is a folder"
        )
    if file.is_file() or file.suffix.lower() in _ENDINGS:
        return None, *_read_file(file), str(source)
    from dice_ray.tracking.reader import of_others

    experiment, table = of_others(str(source))
    return experiment, table, (), str(source)


def _read_file(file: Path) -> tuple[pd.DataFrame, Sequence[str]]:
    """A table with a row for each run, and the line in which each row begins, where the file has lines."""
    import pandas as pd

    if not file.is_file():
        raise InputError(f"there is no file {file}")
    ending = file.suffix.lower()
    if ending not in _ENDINGS:
        raise InputError(f"a table of runs must be a file that ends in {', '.join(_ENDINGS)}, got {file}")
    try:
        if ending == ".parquet":
            return pd.read_parquet(file), ()
        text = file.read_text(encoding="utf-8-sig")
        if ending == ".jsonl":
            lines = {f"line {number}": line for number, line in enumerate(text.split("\n"), 1) if line.strip()}
            return pd.json_normalize([_as_row(line, where) for where, line in lines.items()]), [*lines]
        header = text.partition("\n")[0]
        separator = max("\t;,", key=header.count) if header.strip() else ","
        # An arm may be called None or NA.
        table = pd.read_csv(io.StringIO(text), sep=separator, keep_default_na=False, na_values=[""])
        starts = _starts(text, separator)
        # Of a file that pandas and Python read in different ways, the lines are not known.
        return table, [f"line {number}" for number in starts] if len(starts) == len(table) else ()
    except (ValueError, OSError, NotImplementedError) as error:
        raise InputError(f"{file} must be a table with a row for each run: {first_line(error)}") from error


def _as_row(line: str, where: str) -> Any:
    try:
        return json.loads(line)
    except ValueError as error:
        raise ValueError(f"{where} is not JSON: {error}") from error


def _starts(text: str, separator: str) -> list[int]:
    r"""The lines in which the rows of a table begin: a quoted value may have several lines, and empty ones hold no row.

    >>> _starts('a,b\n"1\n2",3\n\n4,5\n', ",")
    [2, 5]
    """
    reader = csv.reader(io.StringIO(text), delimiter=separator)
    starts, num_read = [], 0
    with suppress(csv.Error):  # a value above Python's limit of 131,072 letters, which pandas takes
        for row in reader:
            if len(row) > 1 or any(value.strip() for value in row):
                starts.append(num_read + 1)
            num_read = reader.line_num
    return starts[1:]


def _stored(compared: Compared, name: str | None) -> Compared:
    """The comparison, stored in the folder of this name; with None it is not stored."""
    if name is None:
        return compared
    from analysis.frames import tag_values
    from dice_ray.run.folder import COMPARISON, PREDICTIONS
    from dice_ray.tracking import schema

    compared.report()  # first: what cannot be shown is not stored
    folder = runs_folder() / name
    folder.mkdir(parents=True, exist_ok=True)
    frame = compared.findings.frame.copy()
    # The items of predictions, of which no run has files, are kept beside them.
    for number in frame.index[tag_values(frame, schema.PREDICTIONS).notna()]:
        kept = folder / PREDICTIONS / str(number)  # an arm's name may be no name of a folder
        for file in (f"test/{schema.ITEMS_FILE}", f"test/{schema.CLASSES_FILE}"):
            for text in compared.findings.texts(frame.loc[[number]], file).values():
                (kept / file).parent.mkdir(parents=True, exist_ok=True)
                write_atomically(kept / file, text)
        frame.loc[number, "artifacts"] = str(kept.resolve())
    with whole_output(folder / COMPARISON) as unfinished:
        frame.to_parquet(unfinished)
    return compared


def _write_back(compared: Compared, experiment: str) -> None:
    """Store the outcome as a run of the experiment; that of an earlier call with the same name is replaced."""
    from analysis import outcome
    from dice_ray.tracking import schema
    from dice_ray.tracking.writer import Writer

    key = f"{schema.COMPARISON}/{compared.name}"
    made = compared.report()
    with Writer(experiment) as writer:
        writer.open(key, name=compared.name, params={}, tags={schema.KIND: schema.COMPARISON})
        writer.end(key, "FINISHED")  # first: values of an earlier call are replaced in a run that has ended
        writer.metrics(key, 0, outcome.metrics(compared.findings))
        writer.tags(key, {schema.NOTE: outcome.note(compared.findings, compared.name)})
        writer.text(key, f"{schema.REPORT_FOLDER}/report.html", made.html())
        for table in made.tables:
            writer.text(key, f"{schema.REPORT_FOLDER}/{table.name}.csv", table.csv())
