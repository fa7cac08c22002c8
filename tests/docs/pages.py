"""README and the pages of docs/, studies too: their blocks, commands, code in sentences, headings and links."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.house.tree import REPOSITORY

FENCE = re.compile(r"^```(\S*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
HEREDOC = re.compile(r"<<'(\w+)'\n(.*?)^\1$", re.DOTALL | re.MULTILINE)
NOT_RUN = re.compile(r"# Not run by the tests: \w.+\.\n")
"""The first line of a block that no test can run, with the reason; readers see it too."""
NAMED = re.compile(r"# (\S+\.(?:py|yaml))\n")
"""The first line of a block that is the content of a file of that name."""


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: str
    line: int
    language: str
    text: str

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def is_run(self) -> bool:
        return not NOT_RUN.match(self.text)

    @property
    def file(self) -> str | None:
        """The file whose content the block is."""
        found = NAMED.match(self.text)
        return found[1] if found else None

    @property
    def python(self) -> list[str]:
        """The Python code of the block: all of it, or what a command reads from the block."""
        if self.language == "python":
            return [self.text]
        return [code for _, code in HEREDOC.findall(self.text)] if self.language == "bash" else []

    @property
    def commands(self) -> list[list[str]]:
        """The words of each command of a block for bash."""
        assert self.language == "bash"
        lines = HEREDOC.sub("", self.text).replace("\\\n", " ").splitlines()
        return [words for line in lines if (words := shlex.split(line, comments=True))]


def guides() -> list[str]:
    """The pages of docs/ in the order of its index."""
    index = (REPOSITORY / "docs/index.md").read_text()
    trees = [text for language, text in FENCE.findall(index) if language == "{toctree}"]
    names = [line for text in trees for line in text.splitlines() if re.fullmatch(r"[\w/-]+", line)]
    return ["docs/index.md", *(f"docs/{name}.md" for name in names)]


STUDIES = sorted(str(path.relative_to(REPOSITORY)) for path in (REPOSITORY / "docs/results").glob("*/README.md"))
PAGES = ["README.md", "AGENTS.md", *guides(), *STUDIES]


def text_of(page: str) -> str:
    return (REPOSITORY / page).read_text(encoding="utf-8")


def blocks(page: str) -> Iterator[Block]:
    text = text_of(page)
    for found in FENCE.finditer(text):
        yield Block(page, text.count("\n", 0, found.start()) + 2, found[1], found[2])


def prose(page: str) -> str:
    """A page without its blocks and comments."""
    return re.sub(r"<!--.*?-->", "", FENCE.sub("", text_of(page)), flags=re.DOTALL)


def code_in_sentences(page: str) -> list[str]:
    """What stands between single backticks in a page, on one line each."""
    return [" ".join(code.split()) for code in re.findall(r"`([^`]+)`", prose(page))]


def links(page: str) -> list[str]:
    """The targets of a page's links."""
    return re.findall(r"\]\(([^)\s]+)\)", prose(page))


def anchors(text: str) -> set[str]:
    """The anchors that GitHub and Sphinx give the headings of a text."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def file_of(page: str, link: str) -> Path:
    """The file that a relative link of a page names."""
    return ((REPOSITORY / page).parent / (link.partition("#")[0] or Path(page).name)).resolve()
