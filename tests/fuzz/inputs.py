"""Strategies of Hypothesis: values of any kind, bytes with altered parts, and JSON with other values in its places."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, Final

from hypothesis import strategies as st

HOSTILE: Final = (
    "../outside/secret",
    "/etc/passwd",
    "..",
    ".",
    "",
    " ",
    "a/b",
    "\x00",
    "\x1b[31m",
    "\u202e",
    "\u2028",
    "\ud800",
    "\r\n",
    "\ufeff",
    "=cmd()",
    "@SUM(A1)",
    "\t=1",
    "<script>alert(1)</script>",
    "\"'><img src=x onerror=alert(1)>",
    "${HOME}",
    "{{7*7}}",
    "$x_1$",
    "\\input{/etc/passwd}",
    "|x|`y`[z](javascript:alert(1))",
    "%s%n",
    "nan",
    "null",
    "true",
    "1e999",
    "9" * 5000,
    "x" * 70_000,
    "train",
    "NaN",
    "O",
    "B-",
    "_",
    "__label__",
)
"""Texts that programs have stumbled over: paths, control characters, markup, formulas, and values of other types."""
TOKENS: Final = (
    *(text.encode(errors="surrogatepass") for text in HOSTILE),
    *(
        b"\xff\xfe",
        b"\xfe\xff",
        b"\x80",
        b"\xc3",
        b"\xf0\x9f",
        b"\n\n\n",
        b'"',
        b"'",
        b"\t",
        b",",
        b"|",
        b":",
        b"#",
        b"- ",
    ),
    *(
        b"[" * 3000,
        b"{" * 3000,
        b'{"a":' * 3000,
        b"(" * 3000,
        b"(1 " * 1500,
        b"]",
        b"}",
        b")",
        b"&a ",
        b"*a",
        b"!!python/name:os.system ",
    ),
    *(
        b"NaN",
        b"Infinity",
        b"-1",
        b"1e400",
        b"99999999999999999999",
        b"\\ud800",
        b"\\u0000",
        b"<<: *a",
        b"? ",
        b"%",
        b"!",
    ),
)

texts = st.one_of(st.text(max_size=20), st.sampled_from(HOSTILE))
numbers = st.one_of(
    st.integers(-3, 3), st.integers(), st.floats(), st.sampled_from([2**31, 2**63, -(2**63) - 1, 10**30, 1e308, 5e-324])
)
scalars = st.one_of(st.none(), st.booleans(), numbers, texts)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=6,
)
"""Any value that JSON or YAML can hold."""


@st.composite
def altered_bytes(draw: st.DrawFn, examples: Sequence[bytes]) -> bytes:
    """One of these with parts deleted, repeated, replaced, cut off or mixed with another; sometimes pure garbage."""
    content = draw(st.sampled_from(examples))
    if draw(st.integers(0, 30)) == 0:
        return draw(st.binary(max_size=300))
    for _ in range(draw(st.integers(0, 5))):
        at = draw(st.integers(0, max(len(content), 1)))
        end = min(len(content), at + draw(st.sampled_from([0, 1, 2, 8, 40])))
        match draw(st.integers(0, 6)):
            case 0:
                content = content[:at] + content[end:]
            case 1:
                content = content[:end] + content[at:end] * draw(st.integers(1, 5)) + content[end:]
            case 2 | 3:
                content = content[:at] + draw(st.sampled_from(TOKENS)) + content[end:]
            case 4:
                content = content[:at] + draw(st.binary(min_size=1, max_size=4)) + content[end:]
            case 5:
                content = content[:at]
            case 6:
                other = draw(st.sampled_from(examples))
                start = draw(st.integers(0, len(other)))
                content = content[:at] + other[start : start + 60] + content[end:]
    return content


@st.composite
def altered(draw: st.DrawFn, examples: Sequence[Any], most: int = 3) -> Any:
    """One of these values of JSON, with some of its parts replaced, deleted or renamed."""
    root = [copy.deepcopy(draw(st.sampled_from(examples)))]
    for _ in range(draw(st.integers(1, most))):
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
    """Every list or mapping inside a value, with each of its indices or keys."""
    items = enumerate(value) if isinstance(value, list) else value.items() if isinstance(value, dict) else ()
    return [place for key, inner in list(items) for place in [(value, key), *_places(inner)]]
