"""Altered inputs for everything that dice_ray reads: each is read, or refused by an error that says why.

A test has 15 inputs of each kind, the same ones each time; with `make fuzz` as many as it names, and others each time.
"""

from __future__ import annotations

import copy
import functools
import os
import resource
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

from dice_ray.errors import DiceRayError

IS_WHOLE = bool(os.environ.get("DICE_RAY_FUZZ"))
HOSTILE = (
    *("../outside/secret", "/etc/passwd", "..", ".", "", " ", "a/b", "\x00", "\x1b[31m", "\u202e", "\u2028", "\ud800"),
    *("\r\n", "\ufeff", "=cmd()", "@SUM(A1)", "\t=1", "<script>alert(1)</script>", "\"'><img src=x onerror=alert(1)>"),
    *("${HOME}", "{{7*7}}", "$x_1$", "\\input{/etc/passwd}", "|x|`y`[z](javascript:alert(1))", "%s%n", "nan", "null"),
    *("true", "1e999", "9" * 5000, "x" * 70_000, "train", "NaN", "O", "B-", "_", "__label__"),
)
"""Texts that programs have stumbled over: paths, control characters, markup, formulas, and values of other types."""
TOKENS = (
    *(text.encode(errors="surrogatepass") for text in HOSTILE),
    *(
        b"\xff\xfe \xfe\xff \x80 \xc3 \xf0\x9f \n\n\n \" ' \t , | : # - &a *a !!python/name:os.system ] } ) ? %".split(
            b" "
        )
    ),
    *(
        b"[" * 3000,
        b"{" * 3000,
        b'{"a":' * 3000,
        b"(" * 3000,
        b"(1 " * 1500,
        b"-1",
        b"1e400",
        b"9" * 20,
        b"\\u0000",
        b"<<: *a",
    ),
)
ALIASES = "".join(f"{b}: &{b} [{', '.join(9 * [f'*{a}'])}]\n" for a, b in zip("abcdefghi", "bcdefghij", strict=True))
BOMBS = (
    f"a: &a [x, x, x]\n{ALIASES}".encode(),
    b"loss: &a [*a]\n",
    b"loss: &a {focal: *a}\n",
    b"t: {<<: &a {<<: *a}}\n",
)
"""YAML that holds itself, or that is small in a file and large once it is walked through."""

texts = st.one_of(st.text(max_size=20), st.sampled_from(HOSTILE))
numbers = st.one_of(
    st.integers(-3, 3), st.integers(), st.floats(), st.sampled_from([2**31, 2**63, 10**30, 1e308, 5e-324])
)
scalars = st.one_of(st.none(), st.booleans(), numbers, texts)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=6,
)


@st.composite
def altered_bytes(draw: st.DrawFn, examples: Sequence[bytes]) -> bytes:
    """One of these with parts deleted, repeated, replaced, cut off or mixed with another; sometimes pure garbage."""
    content = draw(st.sampled_from(examples))
    if draw(st.integers(0, 30)) == 0:
        return draw(st.binary(max_size=300))
    for _ in range(draw(st.integers(0, 5))):
        at = draw(st.integers(0, max(len(content), 1)))
        end = min(len(content), at + draw(st.sampled_from([0, 1, 2, 8, 40])))
        other = draw(st.sampled_from(examples))
        token, binary = draw(st.sampled_from(TOKENS)), draw(st.binary(min_size=1, max_size=4))
        middle = [b"", content[at:end] * 3, token, token, binary, other[at : at + 60]]
        content = content[:at] + draw(st.sampled_from(middle)) + (content[end:] if draw(st.integers(0, 5)) else b"")
    return content


@st.composite
def altered(draw: st.DrawFn, examples: Sequence[Any]) -> Any:
    """One of these values of JSON, with some of its parts replaced, deleted, doubled or renamed."""
    root = [copy.deepcopy(draw(st.sampled_from(examples)))]
    for _ in range(draw(st.integers(1, 3))):
        holder, key = draw(st.sampled_from(_places(root)))
        if isinstance(holder, dict) and draw(st.integers(0, 3)) == 0:
            value = holder.pop(key)
            if draw(st.booleans()):
                holder[draw(texts)] = value
        elif isinstance(holder, list) and holder is not root and draw(st.integers(0, 5)) == 0:
            holder.insert(key, copy.deepcopy(holder[key]))
        else:
            holder[key] = draw(values)
    return root[0]


def _places(value: Any) -> list[tuple[Any, Any]]:
    items = enumerate(value) if isinstance(value, list) else value.items() if isinstance(value, dict) else ()
    return [place for key, inner in list(items) for place in [(value, key), *_places(inner)]]


def hostile(inputs: st.SearchStrategy[Any], num: int, few: int = 15) -> Callable[[Callable[..., None]], Any]:
    """A test of many inputs, its argument `given`: it may raise an error of dice_ray's, and change its folder alone.

    Args:
        inputs: Of one kind.
        num: How many of them `make fuzz` tries.
        few: How many of them other runs of the tests try.
    """

    def decorate(test: Callable[..., None]) -> Any:
        @functools.wraps(test)
        def attack(*arguments: Any, **given: Any) -> None:
            with _limits():
                try:
                    test(*arguments, **given)
                except DiceRayError as error:
                    message = str(error)
                    assert message.strip(), "an empty message"
                    assert len(message) < 20_000
                    assert "Traceback (most recent" not in message
                    assert all(letter.isprintable() or letter in "\n\t" for letter in message), repr(message)

        settings = hypothesis.settings(
            max_examples=num if IS_WHOLE else few,
            derandomize=not IS_WHOLE,
            database=None,
            deadline=None,
            suppress_health_check=list(hypothesis.HealthCheck),
        )
        return pytest.mark.fuzz(settings(hypothesis.given(given=inputs)(attack)))

    return decorate


@contextmanager
def _limits() -> Iterator[None]:
    """Five seconds of CPU time, 1 GiB of memory, and no file outside of the test's folder, which is the working one."""

    def too_long(number: int, frame: object) -> None:
        raise AssertionError("more than 5 s of CPU time")

    before, memory = signal.signal(signal.SIGPROF, too_long), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    signal.setitimer(signal.ITIMER_PROF, 5)
    _OUTSIDE.clear()
    _ALLOWED[:] = [Path.cwd(), Path.home(), os.environ["DICE_RAY_CACHE"], tempfile.gettempdir() + "/tmp"]
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
        _ALLOWED.clear()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory < 1 << 20, "more than 1 GiB of memory"
    assert not _OUTSIDE


_ALLOWED: list[Any] = []
_OUTSIDE: list[str] = []


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if not _ALLOWED or event not in ("open", "os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.system", "os.exec"):
        return
    path = arguments[0]
    if isinstance(path, int) or (event == "open" and "secret" not in str(path) and _reads(*arguments[1:])):
        return
    with suppress(TypeError):
        real = os.path.realpath(os.fsdecode(path))
        if not real.startswith((*map(str, _ALLOWED), "/dev/null")) and "__pycache__" not in real:
            _OUTSIDE.append(f"{event} {real}")


def _reads(mode: str | None, flags: int | None) -> bool:
    if flags:
        return not flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    return "r" in (mode or "r") and "+" not in (mode or "")


sys.addaudithook(_audit)
