"""One name, one thing: no class or type alias is defined twice, and each stored file name is written once."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from tests.house.tree import PACKAGES, REPOSITORY

FILE_NAMES = ("dice_ray/run/folder.py", "dice_ray/tracking/schema.py", "dice_ray/training/checkpoint.py")
"""Where the names of stored files are defined."""
OTHER_FILES = {("model", "dice_ray/models/sources.py")}
"""Paths of others that have a stored name: the folder with the weights in the package of MiniLM."""
PATH_METHODS = {"Path", "joinpath", "with_name", "glob", "rglob"}


def modules() -> dict[str, ast.Module]:
    """Every module of the three packages, by its file."""
    files = sorted(file for package in PACKAGES for file in (REPOSITORY / package).rglob("*.py"))
    assert len(files) > 100
    return {file.relative_to(REPOSITORY).as_posix(): ast.parse(file.read_text(encoding="utf-8")) for file in files}


def types_in(module: ast.Module) -> Iterator[str]:
    """Names of the classes of a module, those inside functions too, and of its type aliases."""
    yield from (node.name for node in ast.walk(module) if isinstance(node, ast.ClassDef))
    for node in module.body:
        match node:
            case ast.AnnAssign(target=ast.Name(name), annotation=annotation) if "TypeAlias" in ast.unparse(annotation):
                yield name


def test_no_class_or_type_alias_is_defined_twice() -> None:
    files = defaultdict[str, list[str]](list)
    for file, module in modules().items():
        for name in types_in(module):
            files[name].append(file)
    assert len(files) > 150
    assert {name: where for name, where in files.items() if len(where) > 1} == {}


def stored_names(file: str, module: ast.Module) -> Iterator[str]:
    """The file names that one of `FILE_NAMES` defines."""
    for node in module.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        names = [name.id for target in targets if target for name in ast.walk(target) if isinstance(name, ast.Name)]
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Constant | ast.Tuple):
            of_file = not file.endswith("tracking/schema.py") or names[0].endswith(("_FILE", "_FOLDER"))
            values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
            yield from (_text(value) for value in values if of_file and _text(value))


def file_literals(module: ast.Module, names: set[str]) -> Iterator[str]:
    """The stored names that a module writes as literals.

    A name with a suffix counts alone and as a part of a path, also in f-strings; a message with spaces does not. Names
    without a suffix are words with other uses, `model` is a section and `report` a command: they count in paths alone.
    """
    in_paths = set[ast.AST]()
    for node in ast.walk(module):
        match node:
            case ast.BinOp(left=left, op=ast.Div(), right=right):
                in_paths |= {left, right}
            case ast.Call(func=ast.Name(name) | ast.Attribute(attr=name), args=arguments) if name in PATH_METHODS:
                in_paths |= set(arguments)
    for node in ast.walk(module):
        text = _text(node)
        parts = [] if " " in text else text.split("/")
        for part in parts:
            if part in names and (Path(part).suffix or len(parts) > 1 or node in in_paths):
                yield part


def _text(node: ast.AST) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def test_each_stored_file_name_is_written_once() -> None:
    parsed = modules()
    defined = [(name, file) for file in FILE_NAMES for name in stored_names(file, parsed[file])]
    names = [name for name, _ in defined]
    assert {"best.pt", "config.yaml", "items.csv", "ledger.jsonl", "report", "trials"} <= set(names)
    assert len(set(names)) == len(names), "a name must be defined in one file"
    written = Counter((name, file) for file, module in parsed.items() for name in file_literals(module, set(names)))
    assert {*(written - Counter(defined))} == OTHER_FILES, f"take the name from {', '.join(FILE_NAMES)}"


def test_file_names_are_seen_in_paths_and_formatted_texts() -> None:
    code = (
        'f"{folder}/items.csv", "plan.yaml", folder / "report", Path("late"), "report", "has no plan.yaml", "late or"'
    )
    names = {"items.csv", "plan.yaml", "report", "late"}
    assert sorted(file_literals(ast.parse(code), names)) == ["items.csv", "late", "plan.yaml", "report"]
