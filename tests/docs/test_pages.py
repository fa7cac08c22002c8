"""What README and docs/ say exists: commands, options, settings, presets, functions, files, anchors."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import dice_ray
from dice_ray import api, losses
from dice_ray.config.schema import RunConfig
from dice_ray.settings import paths
from docs.settings_reference import MARK, settings_reference
from tests.docs.commands import COMMANDS, OPTIONS_OF_ALL, problems_of, unknown_settings
from tests.docs.pages import PAGES, STUDIES, Block, anchors, blocks, code_in_sentences, file_of, links, text_of

LANGUAGES = {"bash", "python", "yaml", "console", "text", "{toctree}", "{eval-rst}"}
SETTING = re.compile(rf"((?:{'|'.join(RunConfig.model_fields)})(?:\.\w+)+)(?:=.*)?")
FILES = (".json", ".yaml", ".csv", ".png", ".md")
ALL_BLOCKS = [block for page in PAGES for block in blocks(page)]
BASH = [block for block in ALL_BLOCKS if block.language == "bash"]


def test_every_block_is_of_a_kind_that_is_checked() -> None:
    assert len(ALL_BLOCKS) > 40
    assert len(BASH) > 15
    assert [block.place for block in ALL_BLOCKS if block.language not in LANGUAGES] == []
    # A block that is not closed would swallow the next one.
    assert [page for page in PAGES if len(re.findall(r"^```", text_of(page), re.MULTILINE)) % 2] == []


def test_commands_exist_with_their_options() -> None:
    wrong = [
        f"{block.place}: {' '.join(words)}: {problem}"
        for block in BASH
        for words in block.commands
        for problem in problems_of(words)
    ]
    assert wrong == []


def test_commands_options_and_settings_in_sentences_exist() -> None:
    options = {option for command in COMMANDS.values() for each in command.params for option in each.opts}
    options |= OPTIONS_OF_ALL
    wrong = []
    for page in PAGES:
        for code in code_in_sentences(page):
            words = code.split()
            if words[0] == "dice-ray" and len(words) > 1 and words[1].islower():
                of_command = COMMANDS.get(words[1])
                known = {option for each in of_command.params for option in each.opts} if of_command else set()
                wrong += [f"{page}: {code}"] if of_command is None else []
                wrong += [f"{page}: {code}: {word}" for word in words if word.startswith("--") and word not in known]
            elif words[0].startswith("--") and words[0] not in options:
                wrong.append(f"{page}: {code}")
            elif (found := SETTING.fullmatch(code)) and not code.endswith(FILES):
                wrong += [f"{page}: {problem}" for problem in unknown_settings(found[1])]
    assert wrong == []


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("dice-ray train mrpc --sett loss=dice", "No such option: --sett"),
        ("dice-ray trian mrpc", "no command trian"),
        ("dice-ray train mprc", "no mprc among the presets"),
        ("dice-ray tune mrpc --space joint:focal", "no joint among the spaces"),
        ("dice-ray ablate losses --data mprc", "no mprc among the presets"),
        ("dice-ray train mrpc --set loss.focal.gama=3", "no setting loss.focal.gama"),
        ("make dmeo", "no target dmeo"),
        ("ray strat --head", "no command ray strat"),
        ("ray start --haed", "No such option '--haed'"),
        ("ray job logs search --folow", "No such option '--folow'"),
        ("ray symmetric-run --address a:1 --nmu-cpus 2 -- true", "No such option '--nmu-cpus'"),
        ("ray symmetric-run --address a:1 -- dice-ray tune mprc", "no mprc among the presets"),
        ("kubectl apply -f deploy/kuberay/rayjbo.yaml", "no file deploy/kuberay/rayjbo.yaml"),
    ],
)
def test_a_wrong_command_is_found(words: str, problem: str) -> None:
    assert any(problem in found for found in problems_of(words.split()))


def python_problems(code: str) -> Iterator[str]:
    """What is wrong with Python code: a syntax error, an import, attribute or keyword that does not exist."""
    tree = ast.parse(code)
    names: dict[str, Any] = {}
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=imported):
                for alias in imported:
                    names[alias.asname or alias.name.partition(".")[0]] = importlib.import_module(alias.name)
            case ast.ImportFrom(module=str(module), names=imported):
                found = importlib.import_module(module)
                for alias in imported:
                    if hasattr(found, "__path__") and find_spec(f"{module}.{alias.name}"):
                        importlib.import_module(f"{module}.{alias.name}")
                    if not hasattr(found, alias.name):
                        yield f"no {alias.name} in {module}"
                    names[alias.asname or alias.name] = getattr(found, alias.name, None)
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(name), attr=attribute) if inspect.ismodule(names.get(name)):
                if not hasattr(names[name], attribute):
                    yield f"no {attribute} in {name}"
            case ast.Call(func=ast.Name(name), args=args, keywords=keywords) if _is_ours(names.get(name)):
                given = {keyword.arg: None for keyword in keywords if keyword.arg}
                try:
                    inspect.signature(names[name]).bind_partial(*args, **given)
                except TypeError as error:
                    yield f"{name}: {error}"


def _is_ours(thing: object) -> bool:
    return callable(thing) and str(getattr(thing, "__module__", "")).startswith("dice_ray")


def test_python_imports_and_calls_what_exists() -> None:
    codes = [(block.place, code) for block in ALL_BLOCKS for code in block.python]
    assert len(codes) > 7
    assert [f"{place}: {problem}" for place, code in codes for problem in python_problems(code)] == []


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("from dice_ray import trian", "no trian in dice_ray"),
        ("from dice_ray import train\ntrain('mrpc', nmae='a')", "nmae"),
        ("import pandas\npandas.DataFame({})", "no DataFame in pandas"),
    ],
)
def test_wrong_python_is_found(code: str, problem: str) -> None:
    assert any(problem in found for found in python_problems(code))


def test_presets_are_valid() -> None:
    presets = [block for block in ALL_BLOCKS if block.language == "yaml"]
    assert presets
    for block in presets:
        file = Path(block.file or "")
        file.write_text(block.text)
        api.validate(file)


def test_links_and_anchors_resolve() -> None:
    wrong = []
    for page in [*PAGES, "CONTRIBUTING.md"]:
        for link in links(page):
            if link.startswith("https://"):
                continue
            file, anchor = file_of(page, link), link.partition("#")[2]
            text = (
                file.read_text().replace(MARK, settings_reference()) if file.suffix == ".md" and file.is_file() else ""
            )
            # Sphinx leaves these out, so that a link to one from a page that it builds breaks `make docs`.
            is_left_out = file.suffix == ".md" and file.parent.parent.name == "results"
            if is_left_out and page.startswith("docs/") and page not in STUDIES:
                wrong.append(f"{page}: {link} is left out by docs/conf.py")
            if not file.exists() or (anchor and anchor not in anchors(text)):
                wrong.append(f"{page}: {link}")
    assert wrong == []


CELL = re.compile(r"(?<!\\)\|")
LINK = re.compile(r"\]\([^)]*\)|[\[\]`*]")


def long_cells(text: str, most: int = 120) -> list[str]:
    """The cells of a page's tables that have more characters, without those of addresses and marks."""
    rows = [line for line in text.splitlines() if line.startswith("|")]
    cells = [LINK.sub("", cell).strip() for row in rows for cell in CELL.split(row.strip("|"))]
    return [cell for cell in cells if len(cell) > most]


def test_no_cell_of_a_table_is_long() -> None:
    """Else a column is a page of its own, and the table does not fit a narrow screen."""
    assert [f"{page}: {cell}" for page in [*PAGES, "CONTRIBUTING.md"] for cell in long_cells(text_of(page))] == []
    assert long_cells("| a | [" + "b" * 121 + "](c) |\n") == ["b" * 121]
    assert long_cells("| a | [b](" + "c" * 121 + ") |\n") == []


def _pages_that_lack(names: list[str], page: str) -> list[str]:
    return [name for name in names if not re.search(rf"\b{re.escape(name)}\b", text_of(page))]


def test_what_there_is_is_documented() -> None:
    known = api.names()
    commands = [f"dice-ray {name}" for name in COMMANDS]
    everything = "".join(map(text_of, PAGES))
    assert [command for command in commands if command not in everything and f"`{command[9:]}`" not in everything] == []
    assert _pages_that_lack(known["losses"], "docs/losses.md") == []
    assert _pages_that_lack(known["studies"], "docs/studies.md") == []
    assert _pages_that_lack(known["tasks"], "docs/presets.md") == []
    assert _pages_that_lack(known["spaces"], "docs/tuning.md") == []
    assert _pages_that_lack([f"dice_ray.{name}" for name in dice_ray.__all__], "docs/api.md") == []
    classes = [f"dice_ray.losses.{name}" for name in losses.__all__ if name != "LossConfig"]
    assert _pages_that_lack(classes, "docs/api.md") == []


def test_every_setting_is_in_the_reference() -> None:
    rows = re.findall(r"^\| `(\S+)` \| (.*) \| (.*) \| (.*) \|$", settings_reference(), re.MULTILINE)
    sections = set(RunConfig.model_fields)
    assert {path for path, *_ in rows} | sections == set(paths(RunConfig))
    assert [path for path, values, _, meaning in rows if not values or not meaning] == []


def test_the_pages_that_are_read_first_are_short() -> None:
    assert len(text_of("README.md").splitlines()) <= 120
    assert len(text_of("AGENTS.md").splitlines()) <= 60


def test_a_block_that_is_not_run_says_why() -> None:
    unmarked = Block("page.md", 1, "bash", "dice-ray list\n")
    assert unmarked.is_run
    assert not Block("page.md", 1, "bash", "# Not run by the tests: needs several machines.\nray start\n").is_run
    assert Block("page.md", 1, "bash", "# Not run by the tests:\nray start\n").is_run
