"""What published forms of data share in these tests: sentences, texts, and writers of lines, arrays and tables."""

from __future__ import annotations

import csv
import io
import json
import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

N: Final = 24
Content: TypeAlias = str | bytes


class Form(NamedTuple):
    """A file or a folder in a published form, and what it means.

    Attributes:
        path: What is given to `init`.
        content: The content of the file, or of each file of the folder by its path.
        task: The task, with its settings.
        first: The first record as `described` writes it.
    """

    path: str
    content: Content | dict[str, Content]
    task: str
    first: str


def words(number: int) -> list[str]:
    draw = random.Random(number)
    return [
        draw.choice(["Ada", "Bob", "Cleo"]),
        "Byron",
        "lives",
        "in",
        draw.choice(["Rome", "Bonn"]),
        "since",
        str(1900 + number),
        ".",
    ]


TAGS: Final = ["B-PER", "I-PER", "O", "O", "B-LOC", "O", "O", "O"]
POS: Final = ["NNP", "NNP", "VBZ", "IN", "NNP", "IN", "CD", "."]
OUTER: Final = ["B-ORG", "I-ORG", "I-ORG", "I-ORG", "I-ORG", "O", "O", "O"]
NAMES: Final = "PER Bob Byron, LOC Bonn"
NESTED: Final = "ORG Bob Byron lives in Bonn, PER Bob Byron, LOC Bonn"
PARTS: Final = "Bob/NNP Byron/NNP lives/VBZ in/IN Bonn/NNP since/IN 1900/CD ./."
TAGGING, PLAIN = "tagging", "tagging tags=plain"
MRC: Final = "mrc_ner spans=nested"


def text(number: int) -> str:
    return " ".join(words(number))


def lines(make: Callable[[int], Any], size: int = N) -> str:
    return "".join(json.dumps(make(number), ensure_ascii=False) + "\n" for number in range(size))


def array(make: Callable[[int], Any], size: int = N, **around: Any) -> str:
    rows = [make(number) for number in range(size)]
    return json.dumps({**around, "data": rows} if around else rows, ensure_ascii=False)


def table(*rows: Sequence[object], separator: str = "\t") -> str:
    return "".join(separator.join(map(str, row)) + "\n" for row in rows)


def commas(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    file = io.StringIO()
    csv.writer(file).writerows([header, *rows])
    return file.getvalue()


def always(*values: object) -> Callable[[int], Sequence[object]]:
    return lambda number: values


def saying(number: int) -> str:
    return f"{random.Random(number).choice(['the', 'a'])} box was late again and nobody called {number}"


def labelled(*labels: object, size: int = 36) -> list[tuple[str, Any]]:
    return [(saying(number), labels[number % len(labels)]) for number in range(size)]


SAID: Final = saying(0)
CLASSES: Final = "text_classification"
