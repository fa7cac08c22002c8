"""Files that others made run no code: no call of the house loads objects from them, or code that comes with a model."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.house.tree import PACKAGES, REPOSITORY

OBJECTS = ("pickle", "cloudpickle", "dill", "marshal", "shelve", "joblib")
"""Modules whose `load` makes any object; `pickle.UnpicklingError` may be caught."""
UNSAFE = ("read_pickle", "unsafe_load", "full_load", "extractall", "unpack_archive", "mktemp")
EXEC = {"dice_ray/user_code.py": 1}
"""The module that the user has named is executed there."""


def breaches(source: str, file: str = "") -> Iterator[str]:
    """The calls of a file that load what can run code, with their lines."""
    num_exec = EXEC.get(file, 0)
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        module, _, name = ast.unparse(node.func).rpartition(".")
        given = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
        is_breach = (
            (module in OBJECTS and name not in ("dumps", "dump"))
            or name in UNSAFE
            or (name == "eval" and not module)  # a model's `eval` runs nothing
            or (name == "load" and module == "torch" and given.get("weights_only") != "True")
            or (name == "load" and module == "yaml" and ast.unparse(node.args[-1]) != "_UniqueKeyLoader")
            or (name == "from_pretrained" and given.get("trust_remote_code") != "False")
            or (ast.unparse(node.func) == "AutoModel.from_pretrained" and given.get("use_safetensors") != "True")
            or given.get("trust_remote_code", "False") != "False"
            or given.get("allow_pickle", "False") != "False"
            or given.get("shell", "False") != "False"
        )
        if name == "exec" and not module:
            num_exec, is_breach = num_exec - 1, num_exec <= 0
        if is_breach:
            yield f"{file}:{node.lineno}: {ast.unparse(node)[:100]}"


def test_nothing_loads_objects_or_code() -> None:
    files = [file for package in PACKAGES for file in sorted((REPOSITORY / package).rglob("*.py"))]
    assert len(files) > 200
    found = [
        breach
        for file in files
        for breach in breaches(file.read_text(encoding="utf-8"), file.relative_to(REPOSITORY).as_posix())
    ]
    assert found == []


@pytest.mark.parametrize(
    "call",
    [
        "pickle.load(file)",
        "cloudpickle.loads(text)",
        "joblib.load(path)",
        "pandas.read_pickle(path)",
        "torch.load(path)",
        "torch.load(path, weights_only=False)",
        "yaml.load(text, yaml.Loader)",
        "yaml.unsafe_load(text)",
        "np.load(path, allow_pickle=True)",
        "AutoTokenizer.from_pretrained(folder)",
        "AutoModel.from_pretrained(folder, trust_remote_code=False)",
        "datasets.load_dataset(path, trust_remote_code=True)",
        "archive.extractall(folder)",
        "shutil.unpack_archive(file)",
        "subprocess.run(line, shell=True)",
        "eval(text)",
        "exec(text)",
    ],
)
def test_a_breach_is_seen(call: str) -> None:
    assert list(breaches(f"def read():\n    return {call}\n")) == [f":2: {call}"]
