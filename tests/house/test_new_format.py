"""A new format is one file and one entry: it is recognised, chosen in a configuration and read by its entry alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Union

import pytest
from pydantic import create_model

from dice_ray.data import guess as recognition
from dice_ray.data.formats import FORMATS
from dice_ray.data.formats.base import READER, Guess, Kept, Labels, RowResult, Sample, TextReaderBranch
from dice_ray.data.hub import HubConfig
from dice_ray.data.records import TextRecord
from dice_ray.data.sources import DataConfig, FilesConfig, load
from dice_ray.settings import Choice


class ArrowsConfig(TextReaderBranch):
    """Texts and their labels as `text -> label`."""

    name = "arrows"
    record_type = TextRecord

    def read(self, path: Path, labels: Labels = "read") -> Iterator[RowResult]:
        for line, row in self.lines(path):
            text, _, label = row.partition(" -> ")
            yield Kept(line, TextRecord(str(line), text, (label,) if labels == "read" else ()))

    @classmethod
    def fits(cls, sample: Sample) -> Guess | str:
        if " -> " not in sample.first_line:
            return "no arrow"
        return sample.attempt(cls).guess({READER: "Texts with arrows to their labels."})


def test_a_format_in_one_file_is_recognised_and_read_by_its_entry_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    path = Path("data.arrows")
    path.write_text("".join(f"the parcel {number} came late -> {'ab'[number % 2]}\n" for number in range(20)))
    monkeypatch.setattr(recognition, "FORMATS", (ArrowsConfig, *FORMATS))
    found = recognition.guess(path)
    assert (found.reader, found.task) == ({"arrows": {}}, {"text_classification": {}})

    formats: Any = Annotated[Union[ArrowsConfig, *FORMATS], Choice()]
    own_files = create_model("Files", __base__=FilesConfig, reader=(formats, ...))
    chosen: Any = Annotated[own_files | HubConfig, Choice()]
    own = create_model("Own", __base__=DataConfig, source=(chosen, ...))
    files = {"folder": str(path.parent.absolute()), "train": path.name, "reader": found.reader}
    splits = load(own.model_validate({"source": {"files": files}}))
    assert sorted([*splits.train, *splits.dev], key=lambda record: int(record.id)) == [*found.records]
