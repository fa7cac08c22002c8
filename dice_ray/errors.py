"""Every exception a user can meet: what must hold, what was given, where, and the known alternatives."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

_LONGEST_WORD: Final = 300
_LONGEST_LINE: Final = 5000
_MOST_SHOWN: Final = 10_000
"""A value with this many items is described, not printed."""
_HOLDERS: Final = (Mapping, list, tuple, set, frozenset)
_LONG_WORD: Final = re.compile(rf"[^\s:]{{{_LONGEST_WORD},}}")


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name closest to a misspelt one, in any case; None if none is close.

    >>> nearest("FOCL", ["dice", "focal"])
    'focal'
    """
    if len(name) > 200:  # quadratic, and no slip of the finger
        return None
    in_lower_case = {each.lower(): each for each in known}
    return next((in_lower_case[each] for each in difflib.get_close_matches(name.lower(), in_lower_case, n=1)), None)


def meant(name: str, known: Iterable[str]) -> str:
    """What a message adds for a misspelt name; empty if no known one is close.

    >>> meant("focl", ["dice", "focal"])
    "; did you mean 'focal'?"
    """
    close = nearest(name, known)
    return f"; did you mean {close!r}?" if close else ""


def counted(number: float, noun: str) -> str:
    """A number with its noun.

    >>> counted(1, "GPU"), counted(0.5, "GPU"), counted(12000, "row")
    ('1 GPU', '0.5 GPUs', '12,000 rows')
    """
    return f"{number:,} {noun if number == 1 else f'{noun}s'}"


def shortened(setting: object, digits: int = 3) -> str:
    """The value of a setting for a line of many; a float has this number of digits, and None is YAML's.

    >>> shortened(2e-5 / 3), shortened(None), shortened("dice")
    ('6.67e-06', 'null', 'dice')
    """
    if isinstance(setting, float):
        return f"{setting:.{digits}g}"
    return "null" if setting is None else str(setting)


def gib(size: int) -> str:
    """A number of bytes in GiB.

    >>> gib(3 * 2**29)
    '1.50 GiB'
    """
    return f"{size / 2**30:.2f} GiB"


def num_items(value: object, most: int) -> int:
    """How many values a value holds, itself and what lies inside of its lists and mappings, counted up to `most`.

    A list that stands in several places counts in each, because a traversal visits it each time: nine levels of
    nine references are nine lists in a file of YAML, and 400 million items.

    >>> num_items({"a": [1, 2]}, 100), num_items([[0] * 9] * 9, 20)
    (4, 20)
    """
    num, level = 1, [value]
    for _ in range(100):  # levels, as a list can hold itself
        inside = [item.values() if isinstance(item, Mapping) else item for item in level if isinstance(item, _HOLDERS)]
        num += sum(map(len, inside))
        if num >= most or not inside:
            return min(num, most)
        level = [inner for item in inside for inner in item]
    return num


def shown(value: object, width: int = 60) -> str:
    """The repr of a value for a message, cut to a width.

    >>> shown("x" * 100, 10), shown([1, 2])
    ("'xxxxxx...", '[1, 2]')
    """
    if num_items(value, _MOST_SHOWN) == _MOST_SHOWN:
        return f"a {type(value).__name__} of more than {_MOST_SHOWN:,} items"
    try:
        quoted = repr(value[:width] if isinstance(value, str) else value)
    except RecursionError:
        return f"a {type(value).__name__} that is nested too deep to be shown"
    whole = len(quoted) <= width and not (isinstance(value, str) and len(value) > width)
    return quoted if whole else f"{quoted[: width - 3]}..."


def cut(message: str) -> str:
    r"""A message with the words and lines cut that no one can read, as the user's own value may be of any length.

    Control characters are escaped, as by `one_line`: a file's name or a cell must not write to the terminal.

    >>> cut("must be a number, got " + 1000 * "x")[-30:]
    'xxxxxxxxx... (1000 characters)'
    >>> cut("there is no file \x1b[31m.csv")
    'there is no file \\x1b[31m.csv'
    """
    printable = _printable(message, besides="\n\t")
    words = _LONG_WORD.sub(lambda word: f"{word[0][: _LONGEST_WORD // 2]}... ({len(word[0])} characters)", printable)
    lines = (line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]}..." for line in words.split("\n"))
    return "\n".join(lines)


def one_line(text: object) -> str:
    r"""A text as one line without control characters, as an escape sequence in a name must not reach the terminal.

    >>> one_line("two\nlines \x1b[31m")
    'two lines \\x1b[31m'
    """
    return _printable(" ".join(str(text).split()))


def _printable(text: str, besides: str = "") -> str:
    """The text with other characters as Python would write them in a string."""
    return "".join(
        each if each.isprintable() or each in besides else each.encode("unicode_escape").decode() for each in text
    )


def first_line(error: BaseException) -> str:
    r"""The first line of an error's message, since those of third-party libraries can be pages long.

    >>> first_line(OSError("no space left\non a disk")), first_line(TimeoutError())
    ('no space left', 'TimeoutError')
    """
    return str(error).strip().partition("\n")[0] or type(error).__name__


@dataclass(frozen=True)
class Problem:
    """One violated requirement at one path of the user's input.

    Attributes:
        path: The configuration path, such as `loss.focal.gamma`.
        must: What must hold, worded to follow the path: "must be above 0".
        got: What was given instead.
        origin: The layer or file that set the value.
        suggestion: The path or name that was probably meant.
        known: The allowed values.
    """

    path: str
    must: str
    got: str | None = None
    origin: str | None = None
    suggestion: str | None = None
    known: tuple[str, ...] = ()

    def __str__(self) -> str:
        text = f"{self.path}: {self.must}"
        if self.got is not None:
            text += f", got {self.got}"
        if self.origin is not None:
            text += f" (from {self.origin})"
        if self.suggestion is not None:
            text += f"; did you mean {self.suggestion}?"
        if self.known:
            text += "" if text.endswith("?") else "."
            text += f" Known: {', '.join(self.known)}."
        return text


class DiceRayError(Exception):
    """An error that the user can act on; the command line prints it without a traceback. Long values in it are cut."""

    def __init__(self, message: str = "") -> None:
        super().__init__(cut(message))


def reason_of(error: BaseException) -> str:
    """Why something failed: the message of an error of ours; of any other, its type and the first line of its message.

    >>> reason_of(DiceRayError("the data are empty")), reason_of(KeyError("label"))
    ('the data are empty', "KeyError: 'label'")
    """
    return str(error) if isinstance(error, DiceRayError) else f"{type(error).__name__}: {first_line(error)}"


class ConfigError(DiceRayError, ValueError):
    """An invalid configuration; the message lists every problem."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        heading = f"The configuration has {counted(len(self.problems), 'problem')}:"
        super().__init__("\n".join([heading, *(f"  {problem}" for problem in self.problems)]))

    # Pickled between processes. By default the class would be called with the message, not with the problems.
    def __reduce__(self) -> tuple[type[ConfigError], tuple[tuple[Problem, ...]]]:
        return type(self), (self.problems,)


class ConflictError(ConfigError):
    """A configuration whose sections are each valid but conflict with one another."""


class InputError(DiceRayError, ValueError):
    """A name, file or module from the user that cannot be used."""


class DataError(DiceRayError, ValueError):
    """A file or row that does not have the format its reader expects."""


class LossInputError(DiceRayError, ValueError):
    """Logits, targets or masks that a loss cannot be computed from."""


class NonFiniteError(DiceRayError, ArithmeticError):
    """A loss, gradient or prediction that is not finite; a run stops before the optimizer step."""


class RunError(DiceRayError, RuntimeError):
    """A run, sweep or study that failed, is in use, or cannot continue."""


class RefusedError(RunError, InputError):
    """A run, sweep or study that does not fit what was asked of it, or an encoder that cannot be used."""


class BusyError(RunError):
    """A folder that is locked by another process."""


class ShadowedError(DiceRayError, ImportError):
    """A file or folder of the user that shadows a package shipped with dice_ray."""


class UnknownNameError(DiceRayError, LookupError):
    """A name that is not registered; the message suggests the nearest name and lists all known ones."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        self.kind, self.name, self.known = kind, name, tuple(sorted(known))
        text = f"There is no {kind} named {name!r}"
        text += meant(name, self.known) or "."
        super().__init__(f"{text} Known: {', '.join(self.known) or 'none'}.")

    # See ConfigError: the message is no argument of the class.
    def __reduce__(self) -> tuple[type[UnknownNameError], tuple[str, str, tuple[str, ...]]]:
        return type(self), (self.kind, self.name, self.known)
