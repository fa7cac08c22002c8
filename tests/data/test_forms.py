"""Small files in published forms, as their own documentation writes them: what `dice-ray init` reads of each.

A form is read right if the task and the first record are those that the file means; else it must be refused, with the
reason. A form that is read as something else is the worst outcome.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from dice_ray.data.folders import files_of_splits
from dice_ray.data.formats.tags import word_spans
from dice_ray.data.guess import guess
from dice_ray.data.records import NestedRecord, PairRecord, QueryRecord, QuestionRecord, Record, TaggedRecord
from dice_ray.errors import DataError
from tests.data.forms.common import Content
from tests.data.forms.names import NAMED
from tests.data.forms.texts import REFUSED, TEXTS

FORMS = NAMED | TEXTS


def write(content: Content | dict[str, Content], path: Path) -> None:
    for file, each in content.items() if isinstance(content, dict) else [(path, content)]:
        Path(file).parent.mkdir(parents=True, exist_ok=True)
        Path(file).write_bytes(each if isinstance(each, bytes) else each.encode())


def described(record: Record) -> str:
    """What a record says: its spans, tags, labels or answer."""
    match record:
        case NestedRecord():
            return ", ".join(f"{of} {' '.join(record.words[first:end])}" for of, first, end in record.spans)
        case QueryRecord():
            return ", ".join(f"{record.type} {' '.join(record.words[first:end])}" for first, end in record.spans)
        case TaggedRecord():
            found = word_spans([tag if tag[:2] in ("B-", "I-") else "O" for tag in record.tags])
            if not found:
                return " ".join(map("/".join, zip(record.words, record.tags, strict=True)))
            return ", ".join(f"{of} {' '.join(record.words[first:end])}" for of, first, end in found)
        case QuestionRecord():
            return f"{record.question} -> {record.answers[0][0].text}"
        case PairRecord():
            return f"{record.first} | {record.second} -> {record.label}"
    return f"{record.text} -> {', '.join(record.labels)}"


@pytest.mark.parametrize("name", FORMS)
def test_a_published_form_is_read_as_what_it_means(name: str) -> None:
    form = FORMS[name]
    path = Path(form.path)
    write(form.content, path)
    found = guess(files_of_splits(path)["train"] if path.is_dir() else path)
    ((task, settings),) = found.task.items()
    assert " ".join([task, *(f"{key}={value}" for key, value in settings.items() if key != "score")]) == form.task
    assert described(found.records[0]) == form.first
    assert not found.bad


@pytest.mark.parametrize("name", REFUSED)
def test_a_form_that_is_not_known_is_refused(name: str) -> None:
    file, content, message = REFUSED[name]
    write(content, Path(file))
    with pytest.raises(DataError, match=message):
        guess(Path(file))
