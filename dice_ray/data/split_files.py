"""Splits in files of one format, in one folder: on this machine's disk, or at a URL."""

from __future__ import annotations

from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic import field_validator
from pydantic_core import PydanticCustomError

from dice_ray.data.cache import file_hash
from dice_ray.data.formats import ReaderConfig
from dice_ray.data.formats.base import UTF_8
from dice_ray.data.formats.span_files import SpansConfig
from dice_ray.data.formats.texts import FoldersConfig
from dice_ray.data.reading import OnBadRow, SplitSource
from dice_ray.data.records import Record
from dice_ray.data.urls import expand_path, expanded, fetched, version
from dice_ray.errors import DataError, meant
from dice_ray.files import holds_secret, is_url, joined, name_of
from dice_ray.settings import Branch, nested


class FilesConfig(Branch):
    """Files of one format in one folder.

    Attributes:
        folder: The folder of the files, or its URL (`s3://bucket/folder`); `~` and `$VARIABLES` are expanded. A URL
            that holds a password or key is refused, as it is stored with each run.
        train: The file of the training split, relative to the folder; a folder with the readers `spans` (brat)
            and `folders`. Of a JSON document with several lists, `data.json#train` is the list `train`.
        dev: The file of the dev split; without it, one is drawn from the training split.
        test: The file of the test split, if there is one.
        reader: The reader of the files.
        on_bad_row: Whether a malformed row is an error, or counted and skipped.
    """

    name = "files"

    train: str
    dev: str | None = None
    test: str | None = None
    folder: str = "."
    reader: ReaderConfig
    on_bad_row: OnBadRow = "error"

    @field_validator("folder")
    @classmethod
    def _without_secrets(cls, folder: str) -> str:
        if holds_secret(folder):
            raise PydanticCustomError(
                "secret",
                "must hold no password or key: give each machine credentials (AWS_ACCESS_KEY_ID, a role), or put the "
                "whole URL into a variable, `$NAME`",
            )
        return folder

    def yields(self) -> type[Record]:
        return self.reader.yields()

    @property
    def title(self) -> str:
        """The name of the folder."""
        folder = expanded(self.folder)
        return name_of(folder) if is_url(folder) else expand_path(self.folder).resolve().name

    def read(self) -> dict[str, SplitSource]:
        """Each split that has a file."""
        return {
            split: SplitSource(path.name, path, partial(self.reader.read, path), self.on_bad_row)
            for split, path in self._paths().items()
        }

    def key(self) -> dict[str, Any]:
        """Everything the records depend on: the content of the files and the settings, but not the folder.

        Of files at URLs it is their versions: a machine that gets the records from another one does not fetch them.
        """
        settings = {name: value for name, value in nested(self).items() if name != "folder"}
        # Without the default: the keys of entries that were written before there was a choice stay as they are.
        reader = {key: value for key, value in nested(self.reader).items() if (key, value) != ("encoding", UTF_8)}
        settings["reader"] = {self.reader.name: reader}
        if is_url(expanded(self.folder)):
            return {
                **settings,
                "versions": [version(url, _setting(split)) for split, urls in self._urls().items() for url in urls],
            }
        paths = self._paths()
        files = [(split, file) for split, path in paths.items() for file in self.reader.files(path) if file.is_file()]
        # With the split: a file may be moved from the end of one folder to the beginning of the next one.
        if isinstance(self.reader, FoldersConfig):  # the labels are names of folders
            settings["names"] = [f"{split}/{file.parent.name}/{file.name}" for split, file in files]
        elif any(path.is_dir() for path in paths.values()):  # the ids are names of files
            settings["names"] = [f"{split}/{file.name}" for split, file in files]
        return {**settings, "hashes": [file_hash(file) for _, file in files]}

    def _names(self) -> dict[str, str]:
        names = {"train": self.train, "dev": self.dev, "test": self.test}
        return {split: name for split, name in names.items() if name is not None}

    def _paths(self) -> dict[str, Path]:
        if is_url(expanded(self.folder)):
            # With the name in the preset: it may hold the key of a list in the file.
            names = {split: Path(name).name for split, name in self._names().items()}
            return {
                split: fetched(urls, _setting(split))[0].with_name(names[split]) for split, urls in self._urls().items()
            }
        folder = expand_path(self.folder)
        return {split: self._existing(folder, name, _setting(split)) for split, name in self._names().items()}

    def _urls(self) -> dict[str, list[str]]:
        """The URLs of the files that are read for each split."""
        folder = expanded(self.folder)
        # No folder of this machine: with the name alone, one in the working directory would be read.
        base = Path(folder)
        paths = {split: self.reader.files(base / name.lstrip("/")) for split, name in self._names().items()}
        return {
            split: [joined(folder, path.relative_to(base).as_posix()) for path in files]
            for split, files in paths.items()
        }

    def _existing(self, folder: Path, name: str, setting: str) -> Path:
        path = folder / name
        if path.is_dir() and isinstance(self.reader, SpansConfig | FoldersConfig):
            return path
        if (file := self.reader.files(path)[0]).is_file():
            return path
        if not folder.is_dir():
            raise DataError(f"{setting}: there must be a file {file}, but there is no folder {folder}")
        others = islice((other for other in folder.rglob("*") if other.is_file()), 1000)
        known = sorted(str(other.relative_to(folder)) for other in others)
        raise DataError(
            f"{setting}: there must be a file {file}{meant(name, known) or '.'} "
            f"The folder holds: {', '.join(known[:20]) or 'no files'}."
        )


def _setting(split: str) -> str:
    return f"data.source.files.{split}"
