"""Counts what a newcomer must hold in mind: `make count`, and of another revision `make count REV=24d4141`."""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import grimp

from tests.house.test_floors import circle_in, floors_of, rooms_of
from tests.house.tree import PACKAGES, REPOSITORY

TASKS = re.compile(r"\b(sentence_pair|text_classification|tagging|mrc_ner|extractive_qa)\b")
FORK = re.compile(r"isinstance\([^()]*, \(?(?:\w+\.)?(?:Sweep|Study)Plan|case (?:Sweep|Study)Plan\(")
COLUMN = re.compile(r"[\"'](?:tags|params)\.|removeprefix\((?:schema\.)?PREFIX\)")


def names_of(module: ast.Module) -> tuple[list[str], list[str]]:
    """The public functions, classes and constants of a module, and of these the constants."""
    constants = [
        target.id
        for node in module.body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name) and not target.id.startswith("_")
    ]
    defined = [node.name for node in module.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    return [name for name in defined if not name.startswith("_")] + constants, [
        each for each in constants if each.isupper()
    ]


def counts(root: Path) -> dict[str, object]:
    """What the packages and tests below a folder have."""
    files = {
        file: file.read_text(encoding="utf-8") for name in PACKAGES for file in sorted((root / name).rglob("*.py"))
    }
    tests = [file.read_text(encoding="utf-8") for file in (root / "tests").rglob("*.py")]
    names = [names_of(ast.parse(text)) for text in files.values()]
    sys.path.insert(0, str(root))
    graph = grimp.build_graph(*PACKAGES, cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    rooms = rooms_of(imports)
    circle = circle_in(rooms)
    inside = [circle_in({m: imports[m] & {*group} for m in group}) for group in _by_room(imports)]
    outside = [file for file in files if "tasks" not in file.relative_to(root).parts]
    return {
        "lines": sum(text.count("\n") for text in files.values()),
        "files": len(files),
        "public names": sum(len(public) for public, _ in names),
        "constants among them": sum(len(constants) for _, constants in names),
        "forks by the kind of plan": sum(len(FORK.findall(text)) for text in files.values()),
        "literals of columns": sum(len(COLUMN.findall(text)) for text in files.values()),
        "files outside tasks/ that name a task": sum(bool(TASKS.search(files[file])) for file in outside),
        "rooms": len(rooms),
        "floors": None if circle else len(floors_of(rooms)),
        "circles, imports for type checkers too": [found for found in (circle, *inside) if found],
        "arrows between rooms": sum(len(imported) for imported in rooms.values()),
        "lines of tests": sum(text.count("\n") for text in tests),
    }


def _by_room(imports: dict[str, set[str]]) -> list[list[str]]:
    by_room: dict[str, list[str]] = {}
    for module in imports:
        by_room.setdefault(".".join(module.split(".")[:2]), []).append(module)
    return [*by_room.values()]


def main(revision: str | None) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = REPOSITORY
        if revision:
            archive = subprocess.run(["git", "archive", revision], cwd=REPOSITORY, capture_output=True, check=True)
            with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as opened:
                opened.extractall(folder, filter="data")
            root = Path(folder)
        for name, number in counts(root).items():
            print(f"{name:42} {number:,}" if isinstance(number, int) else f"{name:42} {number}")


if __name__ == "__main__":
    main(next(iter(sys.argv[1:]), None))
