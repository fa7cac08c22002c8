"""Runs that other programs made, as the findings of a study: which column says what.

Only this file knows that their columns have other names. What it returns has one parent and a cell for each run, as the
frame of a study, so that comparison, verdict, tables and figures are those of a study.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pandas as pd

from analysis.cells import latest_cells
from analysis.comparison import is_row
from analysis.faults import MISSING, differing, faults
from analysis.frames import Findings
from dice_ray.errors import InputError, UnknownNameError, counted, shown
from dice_ray.metrics import catalogue
from dice_ray.tracking import schema

_ARMS: Final = ("arm", "loss", "method", "model", "variant", "system", "config", "name")
_SEEDS: Final = ("seed", "random_seed", "random_state", "fold", "split", "replicate", "rep")
"""Columns that are taken for the arm or the seed, the most likely first."""
_BASELINES: Final = ("baseline", "base", "default", "control", "cross_entropy", "ce", "none")
_FAMILIES: Final = ("params.", "metrics.", "tags.")
_MOST_ARMS: Final = 30
_RUNNING: Final = ("running", "scheduled", "unfinished", "waiting")
_BROKEN: Final = ("failed", "killed", "crashed", "error", "fail", "pruned")
_STATES: Final = ("status", "state", "State", "tags.state", f"tags.{schema.STATE}")
"""Columns of a run's state: MLflow's, those of CSV files of ours and of W&B, and tags, as a pruned trial of Optuna's
`MLflowCallback` or of ours is FINISHED for MLflow."""
_DIRECTIONS: Final = ("tags.direction", "tags.optuna.study_direction")
"""Tags in which Optuna's `MLflowCallback` and MLflow's storage for Optuna say which values are better."""


@dataclass(frozen=True)
class Columns:
    """Which columns a user asks for; what is None is guessed, and the report says how.

    Attributes:
        metric: The column of the scores.
        arm: The column of what is compared.
        seed: The column by which runs of different arms are paired.
        baseline: The arm that the others are compared with.
        by: A column by whose values the runs are compared separately, such as the data set.
        where: Values that columns must have; other runs are left out.
        lower_is_better: Where the metric's name does not say so.
    """

    metric: str
    arm: str | None = None
    seed: str | None = None
    baseline: str | None = None
    by: str | None = None
    where: Mapping[str, str] | None = None
    lower_is_better: bool | None = None

    def words(self) -> list[str]:
        """The options of the command line that ask for them."""
        columns = {"arm": self.arm, "seed": self.seed, "metric": self.metric, "baseline": self.baseline, "by": self.by}
        given = [(option, value) for option, value in columns.items() if value is not None]
        given += [("where", f"{column}={value}") for column, value in (self.where or {}).items()]
        return [
            *(word for option, value in given for word in (f"--{option}", value)),
            *(["--lower-is-better"] if self.lower_is_better else []),
        ]


def findings_of(
    table: pd.DataFrame,
    asked: Columns,
    name: str,
    source: str,
    command: Sequence[str] = (),
    row_names: Sequence[str] = (),
) -> Findings:
    """The findings of a table of runs.

    Args:
        table: One row for each run. Its columns may be called as MLflow's `search_runs` calls them (`params.loss`,
            `metrics.f1`, `tags.x`, `status`); the later of two rows is the later run.
        asked: Which column says what.
        name: Of the comparison.
        source: Where the runs are from, in words.
        command: The words of the command that makes the comparison, without the options of the columns.
        row_names: What each row is called where it is shown, as `line 2` of a file; by default `row 1` and so on.

    Raises:
        UnknownNameError: There is no such column, or no such arm.
        InputError: Arm or seed are not clear, or the runs cannot be compared.
    """
    table = table.set_axis([str(column) for column in table.columns], axis=1).reset_index(drop=True)
    table = table.astype(dict.fromkeys(table.select_dtypes("category"), object))
    if twice := sorted(set(table.columns[table.columns.duplicated()])):
        raise InputError(f"each column must have a name of its own, and {source} has two named {', '.join(twice)}")
    row_names = row_names or [f"row {number + 1}" for number in table.index]
    metric = _column(table, asked.metric, "metrics.")
    metric_name = _short(metric)
    direction = _direction_of_optuna(table, metric_name)
    table = _chosen(table, asked.where or {})
    by = asked.by and _column(table, asked.by)
    settings = _settings(table, {metric, by, "id", *_STATES})
    seed = _column(table, asked.seed) if asked.seed else _guessed_seed(table, settings, asked.arm)
    arm = _column(table, asked.arm) if asked.arm else _guessed_arm(table, settings, seed, by)
    keys = [arm, seed, *([by] if by else [])]
    is_blank = table[keys].map(lambda value: isinstance(value, str) and not value.strip())
    rows = table[~(table[keys].isna() | is_blank).any(axis="columns")]
    arms, seeds = rows[arm].map(_as_name), _as_numbers(rows[seed])
    values, status = _values(rows[metric], metric_name, row_names), _faulty_status(rows)
    states = status.str.lower().map(
        lambda each: "failed" if each in _BROKEN else "unfinished" if each in _RUNNING else "done"
    )
    _check(arms, arm, rows[seed], seed, values[states == "done"], metric_name)
    baseline = _baseline(arms, asked.baseline, arm)
    places = rows[by].map(_as_name) if by else None
    lower = direction == "minimize" if asked.lower_is_better is None and direction else asked.lower_is_better
    label = catalogue.label_of_others(metric_name, lower)
    pinned = replace(asked, arm=asked.arm or arm, seed=asked.seed or seed, baseline=baseline)
    score = values.where(states == "done")
    settings = [each for each in settings if each not in keys]
    cells = pd.DataFrame(
        {
            "id": rows["id"].map(str) if "id" in rows else [row_names[number] for number in rows.index],
            "parent": name,
            "name": arms + "/" + rows[seed].map(_as_name),
            "kind": "cell",
            "arm": arms,
            "seed": seeds,
            "state": states.where(score.notna() | (states != "done"), "failed").replace("unfinished", None),
            schema.metric_column(label): score,
            schema.tag_column(schema.FAILURE): [
                None if has_score else f"no finite value of {metric_name}" if state == "done" else f"its status is {of}"
                for has_score, state, of in zip(score.notna(), states, status, strict=True)
            ],
            **{schema.param_column(_short(each)): rows[each].map(_as_name, na_action="ignore") for each in settings},
        }
    )
    if places is not None:
        cells[schema.tag_column(schema.VARIANT)] = places
    groups = [*cells.groupby(places, sort=False)] if places is not None else [("", cells)]
    for _, group in groups:
        cells.loc[group.index, schema.tag_column(schema.DIFFERING)] = differing(latest_cells(group, label)) or None
    sentences = [
        _how(asked, arm, seed, baseline, by, len(rows), source),
        *(each for place, group in groups for each in faults(group, label, baseline, rows[seed], str(place))),
    ]
    if num := len(table) - len(rows):
        sentences.insert(1, f"Left out: {counted(num, 'run')} without a value of {_short(arm)} or {_short(seed)}.")
    if direction:
        sentences.append(f"Which {metric_name} is better is that of the Optuna study: {direction}.")
    elif label == metric_name and catalogue.metric(metric_name) == catalogue.Metric():
        sentences.append(
            f"A higher {metric_name} is taken as better: its name says nothing else (--lower-is-better says the other)."
        )
    parent = {
        "id": name,
        "name": name,
        "kind": "study",
        schema.tag_column(schema.METRIC): label,
        schema.tag_column(schema.BASELINE): baseline,
        schema.tag_column(schema.COMPARED): source,
        schema.tag_column(schema.COMPARED_BY): _short(arm),
        schema.tag_column(schema.CAUTIONS): "\n".join(sentences),
        schema.tag_column(schema.COMMAND): shlex.join([*command, *pinned.words()]) if command else "",
    }
    frame = pd.concat([pd.DataFrame([parent]), cells], ignore_index=True)
    never = pd.to_datetime(pd.Series(None, frame.index), utc=True)
    frame = frame[[*dict.fromkeys([*cells, *parent])]].assign(status=None, start=never, end=never, artifacts=None)
    return Findings(frame.astype({"seed": "Int64"}))


def _column(table: pd.DataFrame, name: str, *families: str) -> str:
    """The column that is meant: a parameter may be named without `params.`, a metric without `metrics.`."""
    for prefix in ("", *(families or _FAMILIES)):
        if f"{prefix}{name}" in table:
            return f"{prefix}{name}"
    columns = [*map(str, table)]
    names = [each for each in columns if not families or each.startswith(families)] or columns
    raise UnknownNameError("column", name, {_short(each) for each in names})


def _settings(table: pd.DataFrame, others: Container[str | None]) -> list[str]:
    """The columns that may be settings: the parameters, or what is no measurement of a table without families."""
    columns = [each for each in map(str, table) if each not in others]
    params = [each for each in columns if each.startswith("params.")]
    return params or [each for each in columns if not each.startswith(_FAMILIES) and not _is_measured(table[each])]


def _short(column: str) -> str:
    """The name of a column without the family that MLflow gives it.

    >>> _short("params.loss"), _short("loss")
    ('loss', 'loss')
    """
    return next((column.removeprefix(family) for family in _FAMILIES if column.startswith(family)), column)


def _last(column: str) -> str:
    """The last part of a column's name, as `seed` of `params.training/seed`."""
    return re.split(r"[./]", column)[-1].lower()


def _as_name(value: object) -> str:
    """The text of a value: a whole number has no decimals."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()


def _is_measured(values: pd.Series[Any]) -> bool:
    """Whether a column of a table without families is a measurement: nearly each run has another fraction."""
    numbers = pd.to_numeric(values, errors="coerce").dropna()
    return bool((numbers % 1 != 0).any()) and 2 * numbers.nunique() > len(numbers)


def _chosen(table: pd.DataFrame, where: Mapping[str, str]) -> pd.DataFrame:
    if table.empty:
        raise InputError("a comparison must have runs, and there are none")
    for name, value in where.items():
        column = _column(table, name)
        texts = table[column].map(_as_name)
        if not (texts == value).any():
            raise UnknownNameError(f"value of {name}", value, sorted(set(texts))[:20])
        table = table[texts == value]
    return table


def _guessed_seed(table: pd.DataFrame, settings: Sequence[str], arm: str | None) -> str:
    found = [each for word in _SEEDS for each in settings if _last(each) == word]
    varying = [each for each in found if table[each].nunique() > 1]
    if varying:
        return varying[0]
    if found:
        raise InputError(_too_few_seeds(found[0], table[found[0]]))
    repeated = [
        f"{_short(each)} ({counted(table[each].nunique(), 'value')})"
        for each in settings
        if each != arm and 2 <= table[each].nunique() < table[each].count()
    ]
    raise InputError(
        "the runs of an arm must differ in a seed, by which they are paired with those of other arms, and no column "
        f"is named so: give its column by --seed (candidates: {', '.join(repeated) or 'none'})"
    )


def _guessed_arm(table: pd.DataFrame, settings: Sequence[str], seed: str, by: str | None) -> str:
    """The column named as an arm, else the only one with 2 to 30 values that repeat, else the one that leaves no run
    twice.
    """
    candidates = {
        each: num
        for each in settings
        if each != seed and 2 <= (num := table[each].nunique()) <= min(_MOST_ARMS, table[each].count() / 2)
    }
    once = [each for each in candidates if not table.duplicated([each, seed, *([by] if by else [])]).any()]
    for found in ([each for each in candidates if _last(each) in _ARMS], [*candidates], once):
        if len(found) == 1:
            return found[0]
    named = ", ".join(f"{_short(each)} ({num} values)" for each, num in candidates.items())
    raise InputError(
        "what is compared must be one column: give it by --arm "
        f"(candidates with 2 to {_MOST_ARMS} values that repeat: {named or 'none'})"
    )


def _as_numbers(seeds: pd.Series[Any]) -> pd.Series[int]:
    """Seeds as numbers; texts, such as the names of folds, and numbers that a float rounds are numbered in order."""
    numbers = pd.to_numeric(seeds, errors="coerce")
    if (numbers % 1 == 0).all() and numbers.between(-(2**53), 2**53, inclusive="neither").all():
        return numbers.astype("int64")
    names = seeds.map(_as_name)
    order = {value: number for number, value in enumerate(sorted(set(names)), start=1)}
    return names.map(order).astype("int64")


def _values(column: pd.Series[Any], metric: str, row_names: Sequence[str]) -> pd.Series[float]:
    """The scores; NaN for a run without one.

    Raises:
        InputError: One is a text.
    """
    is_text = column.map(lambda value: isinstance(value, str))
    empty = is_text & column.map(lambda value: str(value).strip().lower() in MISSING)
    numbers = pd.to_numeric(column.mask(empty), errors="coerce").astype("float64")
    wrong = column[numbers.isna() & is_text & ~empty]
    if len(wrong):
        raise InputError(f"{metric} must be a number, got {shown(wrong.iloc[0])} in {row_names[wrong.index[0]]}")
    return numbers.replace([float("inf"), float("-inf")], float("nan"))


def _faulty_status(rows: pd.DataFrame) -> pd.Series[str]:
    """The status of each run that failed or has not ended; empty for the others, and where the table has none."""
    found = pd.Series("", rows.index)
    for column in (each for each in _STATES if each in rows):
        status = rows[column].astype("str")
        found = found.mask(status.str.lower().isin((*_BROKEN, *_RUNNING)), status)
    return found


def _check(
    arms: pd.Series[str], arm: str, seeds: pd.Series[Any], seed: str, done: pd.Series[float], metric: str
) -> None:
    """Check that there is something to compare; `done` are the values of the runs that finished.

    Raises:
        InputError: There is not.
    """
    if arms.nunique() < 2:
        found = f"{_short(arm)} is {arms.iloc[0]!r} in all" if len(arms) else f"no run has {_short(arm)} and a seed"
        raise InputError(f"a comparison must have two arms or more, and {found}")
    if rows := [each for each in arms.unique() if is_row(each)]:
        raise InputError(f"an arm must have a name that no row of a report has, got {rows[0]!r} as {_short(arm)}")
    if done.empty:
        raise InputError(f"a comparison must have runs that finished, and none of {counted(len(arms), 'run')} has")
    if 2 * (lacking := int(done.isna().sum())) >= len(done):
        raise InputError(
            f"{metric} must have a value in the runs that are compared, and {lacking} of {len(done)} that finished "
            "lack it: give another --metric, or choose the runs by --where COLUMN=VALUE"
        )
    if seeds.nunique() < 2:
        raise InputError(_too_few_seeds(seed, seeds))


def _too_few_seeds(column: str, seeds: pd.Series[Any]) -> str:
    first = seeds.dropna()
    found = f"is {_as_name(first.iloc[0])} in all" if len(first) else "has no value"
    return f"a comparison must have runs of several seeds, and {_short(column)} {found}: give another column by --seed"


def _baseline(arms: pd.Series[str], asked: str | None, arm: str) -> str:
    known = list(dict.fromkeys(arms))
    if asked is not None:
        if asked not in known:
            raise UnknownNameError(f"value of {_short(arm)}", asked, known)
        return asked
    return next((name for word in _BASELINES for name in known if name.lower() == word), known[0])


def _how(asked: Columns, arm: str, seed: str, baseline: str, by: str | None, num_runs: int, source: str) -> str:
    """Which column was taken for what, and how to take another one."""
    columns = [
        f"arms by {_short(arm)}" + (" (guessed: --arm takes another column)" if asked.arm is None else ""),
        f"paired by {_short(seed)}" + (" (guessed: --seed takes another)" if asked.seed is None else ""),
        *([f"separately for each value of {_short(by)}"] if by else []),
    ]
    first = " (guessed: --baseline takes another arm)" if asked.baseline is None else ""
    return f"Compared are {counted(num_runs, 'run')} of {source}, {', '.join(columns)}; baseline {baseline}{first}."


def _direction_of_optuna(table: pd.DataFrame, metric: str) -> str | None:
    """`minimize` or `maximize`, where Optuna stored it; None where dice_ray knows the metric."""
    values = pd.concat([pd.Series(dtype=str), *(table[tag] for tag in _DIRECTIONS if tag in table)]).dropna()
    found = set(values.map(lambda value: str(value).lower()))
    is_known = catalogue.metric(metric) != catalogue.Metric()
    return next(iter(found)) if not is_known and found in ({"minimize"}, {"maximize"}) else None
