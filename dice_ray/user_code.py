"""Functions that the user has written, by their address: `module:function` or `file.py:function`.

A module in the current folder is found as its file, before an installed one: the console script, a notebook and the
processes of Ray do not agree on whether that folder can be imported. A stored address is absolute, so that it means the
same in another process, and when a sweep is resumed from another folder.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import os
import sys
import sysconfig
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, Final, TypeAlias

from pydantic import AfterValidator

from dice_ray.errors import InputError, UnknownNameError, reason_of

_OURS: Final = ("dice_ray", "search_spaces")
"""Packages that are installed wherever dice_ray is."""
_EXECUTED_NOW: dict[Path, ModuleType] = {}
"""The modules whose files are being executed."""


def absolute(address: str) -> str:
    """The address with the absolute path of its file, if it names a file or a module in the current folder.

    A name without a colon, such as that of a sampler, is returned unchanged.
    """
    where, colon, name = address.rpartition(":")
    return f"{_absolute(where)}:{name}" if colon else address


Address: TypeAlias = Annotated[str, AfterValidator(absolute)]
"""The type of a setting that holds an address, or the name of something that comes with dice_ray."""


def address_of(function: Any) -> str:
    """The address of a function or class that is defined at the top of a module: of its file, unless it is installed.

    Raises:
        InputError: Another process cannot load it: it is from a notebook, a running script, or another function.
    """
    name, where = getattr(function, "__qualname__", ""), getattr(function, "__module__", None)
    module = sys.modules.get(where or "")
    file = getattr(module, "__file__", None)
    if module is None or where == "__main__" or file is None or getattr(module, name, None) is not function:
        found = "the script that runs" if where == "__main__" else where or type(function).__name__
        raise InputError(
            f"{name or function!r} must be defined at the top of a file that can be imported, from which other "
            f"processes and a resumed run load it, and it is of {found}: write it to another file (in a notebook a "
            "cell that begins with %%writefile my_code.py does), and import it from there"
        )
    where = module.__name__ if _is_installed(module.__name__, file) else Path(file).absolute()
    return f"{where}:{name}"


def load(address: str) -> Callable[..., Any]:
    """The function or class at an address; a file is read again at each call.

    Raises:
        InputError: It is not an address, or its module cannot be imported.
        UnknownNameError: The module has no such function.
    """
    where, colon, name = address.rpartition(":")
    if not colon or not where:
        raise InputError(f"a function must be given as module:function or file.py:function, got {address!r}")
    module = module_at(where)
    function: Callable[..., Any] | None = getattr(module, name, None)
    if not callable(function):
        own = (key for key, value in vars(module).items() if getattr(value, "__module__", None) == module.__name__)
        raise UnknownNameError(f"function in {where}", name, [key for key in own if not key.startswith("_")])
    return function


def module_at(where: str) -> ModuleType:
    """The module of that name, or of that file if it ends in .py; an InputError if there is none, or it raises."""
    where = _absolute(where)
    if where.endswith(".py") and not Path(where).is_file():
        raise InputError(f"{where} must be an existing file")
    try:
        return _module_of_file(Path(where)) if where.endswith(".py") else importlib.import_module(where)
    except (Exception, SystemExit) as error:
        raise InputError(
            f"{where} must be a module that can be imported, and raised {reason_of(error)} (the current folder is "
            f"{Path.cwd()})"
        ) from error


def digest(address: str) -> str:
    """The digest of a function's source: of the file at its address, and of the file that defines the function where
    the first one imports it.

    The whole files count, since a loss is usually made of several functions and classes. Files that they import do not.

    Raises:
        InputError: The function cannot be loaded, or is in no file, as in a cell of a notebook.
    """
    function = load(address)
    modules = [module_at(address.rpartition(":")[0])]
    if inspect.isfunction(function) or inspect.isclass(function):
        modules.append(sys.modules[function.__module__])
    files = list(dict.fromkeys(file for module in modules if (file := getattr(module, "__file__", None))))
    if not files:
        raise InputError(f"{address} must be in a file, from which other processes load it")
    return hashlib.sha256(b"".join(Path(file).read_bytes() for file in files)).hexdigest()[:12]


def raised_at(error: BaseException) -> str | None:
    """The line of the user's own code that an error comes through last; None if it comes through none."""
    for frame, line in reversed([*traceback.walk_tb(error.__traceback__)]):
        file, name = frame.f_code.co_filename, frame.f_globals.get("__name__", "")
        is_python = file.startswith((sysconfig.get_path("stdlib"), "<"))
        if not (is_python or _is_installed(name, file) or name.partition(".")[0] == "analysis"):
            return f"{file}, line {line}"
    return None


def _is_installed(module: str, file: str) -> bool:
    return module.partition(".")[0] in _OURS or "-packages/" in file  # Debian's folder is dist-packages


def _absolute(where: str) -> str:
    if where.endswith(".py"):
        return str(Path(os.path.expanduser(where)).absolute())
    if where.partition(".")[0] in _OURS:  # a working copy of dice_ray may be the current folder
        return where
    path = Path.cwd().joinpath(*where.split("."))
    files = (path.with_suffix(".py"), path / "__init__.py")
    return next((str(file) for file in files if file.is_file()), where)


def _module_of_file(path: Path) -> ModuleType:
    """The module of a file, executed anew. It can import what lies beside it, as a script can.

    A file that loads itself while it is executed, as a script does that trains with a loss of its own, gets the module
    as far as it is executed: to execute it again would never end.
    """
    if path in _EXECUTED_NOW:
        return _EXECUTED_NOW[path]
    is_package = path.stem == "__init__"
    names, root = [] if is_package else [path.stem], path.parent
    while (root / "__init__.py").is_file():
        names, root = [root.name, *names], root.parent
    for folder in (root, Path.cwd()):
        if str(folder) not in sys.path:
            sys.path.append(str(folder))  # at the end: a file of the user must not hide an installed package
    if len(names) > 1:
        name = ".".join(names)
        importlib.import_module(name.rpartition(".")[0])  # relative imports need the packages above
    else:
        name = str(path.with_suffix(""))  # a name that no import statement can mean
    folders = [str(path.parent)] if is_package else None
    spec = importlib.util.spec_from_file_location(name, path, submodule_search_locations=folders)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = _EXECUTED_NOW[path] = module  # in sys.modules, since a dataclass looks there for its module
    try:
        # Compiled here, since Python's cached bytecode can be that of an edit in the same second.
        exec(compile(path.read_bytes(), str(path), "exec"), vars(module))  # nosec B102  # what the user named
    finally:
        del _EXECUTED_NOW[path]
    return module
