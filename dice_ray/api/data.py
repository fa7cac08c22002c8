"""Data before any run: a first preset for files, the inspection of data sets, and the cache."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dice_ray.api import library
from dice_ray.api.presets import validate
from dice_ray.errors import InputError
from dice_ray.files import check_output, is_url, parted, runs_folder, without_password, write_output
from dice_ray.run.names import check_lists, names_of

if TYPE_CHECKING:
    from analysis.report import Report
    from dice_ray.config.init import Starter
    from dice_ray.data.cache import CacheEntryInfo
    from dice_ray.data.reading import OnBadRow
    from dice_ray.tasks.inspection import Inspection


def init(
    file: str | Path,
    *,
    dev: str | Path | None = None,
    test: str | Path | None = None,
    text_columns: Sequence[str] = (),
    label_column: str | None = None,
    id_column: str | None = None,
    group_column: str | None = None,
    time_column: str | None = None,
    positive: str | None = None,
    encoding: str | None = None,
    format: str | None = None,
    on_bad_row: OnBadRow | None = None,
    out: Path | None = None,
    overwrite: bool = False,
) -> tuple[Starter, Path]:
    """Write a first preset for files of one format: guessed from the training file, checked on all of them.

    Args:
        file: Training file or its URL, or a folder whose files are named train, dev (or valid) and test.
        dev: Dev file; without one, dev is drawn from the training file.
        test: Test file; without one, data.test_share makes each seed of a study draw one.
        text_columns: Column of the texts, twice for pairs; guessed where not given, as are the others.
        label_column: Column of the labels.
        id_column: Column of the ids, which predictions repeat; by default a record's id is its line.
        group_column: Column of groups, such as customers: the records of one are never in two splits that are drawn.
        time_column: Column of dates or numbers: dev and test, unless given, are the latest records.
        positive: Positive label.
        encoding: Encoding of the files.
        format: Reader of the files, such as conll.
        on_bad_row: Refuse or skip malformed rows; by default they are skipped if there are few. With either, a format
            is recognised only if at most 1 % of the first 20,000 rows are malformed.
        out: Preset to write; by default the training file's name with .yaml, in this folder.
        overwrite: Replace an existing preset.
    """
    from dice_ray.config.init import start, target
    from dice_ray.data.folders import files_of_splits
    from dice_ray.data.urls import local_file
    from dice_ray.run.tables import given_of

    url = _folder_of([str(each) for each in (file, dev, test) if each is not None])
    local = Path(file).resolve() if Path(file).is_dir() else Path(file)  # a folder may be given as `.`
    name = parted(str(file))[1] if url else local.name
    out = target(name, None if out is None else Path(out), overwrite)
    file = local_file(file, "FILE")
    splits = {
        split: None if own is None else local_file(own, f"--{split}") for split, own in (("dev", dev), ("test", test))
    }
    if file.is_dir():
        found = files_of_splits(file)
        file, splits = found["train"], {split: own or found.get(split) for split, own in splits.items()}
    check_output(out, [each for each in (file, *splits.values()) if each is not None])
    columns = text_columns, label_column, id_column, group_column, time_column
    given = given_of(*columns, positive, encoding, format)
    starter = start(
        file, splits["dev"], splits["test"], given, name=name.partition(".")[0], on_bad_row=on_bad_row, url=url
    )
    write_output(out, starter.text)
    return starter, out


def _folder_of(files: Sequence[str]) -> str | None:
    """The URL of the folder of these files, which must be one; None where they are on the disk."""
    folders = {parted(file)[0] if is_url(file) else None for file in files}
    if len(folders) > 1:
        shown = ", ".join(without_password(file) for file in files)
        raise InputError(f"files at URLs must be in one folder, which the preset names, got {shown}")
    return folders.pop()


def inspect(presets: Sequence[str | Path], settings: Sequence[str] = ()) -> list[Inspection]:
    """Counts, imbalance, labels, lengths, duplicates and dropped rows of the data sets of these presets.

    Args:
        presets: Names of presets, or paths of YAML files.
        settings: Values over each preset, as `data.dev_share=0.2`.
    """
    from dice_ray.tasks import inspection

    check_lists(presets=presets)
    found, names = [], names_of(presets)
    for preset in presets:
        config = validate(preset, settings).with_data_name(names[preset])
        found.append(inspection.inspect(names[preset], config.task, config.splits()))
    return found


def imbalance_report(found: Sequence[Inspection]) -> Report:
    """Tables and a plot of inspected data sets; for the paper's data sets the first table is its Table 1."""
    library.folder_of("analysis")
    from analysis import imbalance

    return imbalance.imbalance_report(found)


def inspection_folder(presets: Sequence[str | Path]) -> Path:
    """The default folder of the tables and the plot of these data sets."""
    first, *others = (Path(preset).stem for preset in presets)
    return runs_folder() / "inspect" / (f"{first}_and_{len(others)}_more" if others else first)


def cached() -> list[CacheEntryInfo]:
    """The entries of the cache (data sets and encoded rows), the most recently used first."""
    from dice_ray.data import cache

    return cache.list_entries()


def cache_folder() -> Path:
    """The folder of the cache."""
    from dice_ray.data import cache

    return cache.folder()


def clear_cache(unused_for: float = 0.0) -> int:
    """Delete the entries of the cache; returns how many. Files that a run has open stay readable.

    Args:
        unused_for: Entries that were used within this number of seconds stay.
    """
    from dice_ray.data import cache

    return cache.clear(unused_for)
