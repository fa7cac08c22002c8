"""What is installed with dice_ray, by name: presets, spaces, studies, tasks and losses."""

from __future__ import annotations

import importlib.util
import shlex
from collections.abc import Mapping
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from dice_ray.errors import InputError, ShadowedError, UnknownNameError, meant

if TYPE_CHECKING:
    from dice_ray.losses.table import LossRow
    from dice_ray.run.tables import Preset
    from dice_ray.tuning.study_file import StudyFile


def folder_of(package: str) -> Path:
    """The folder of `search_spaces` or `analysis`; a ShadowedError where Python finds another package of that name."""
    own = Path(__file__).resolve().parents[2] / package
    spec = importlib.util.find_spec(package)
    first = Path(spec.origin).resolve() if spec and spec.origin else None
    if first != own / "__init__.py":
        raise ShadowedError(
            f"dice_ray needs its own package {package} in {own}, but Python finds {first} first; "
            "rename that one, or work in another folder"
        )
    return own


def preset_file(preset: str | Path) -> Path:
    """The file of a preset: a shipped one by its name, any other by its path."""
    path = Path(preset)
    is_yaml = path.suffix in (".yaml", ".yml")
    if is_yaml and path.is_file():
        return path
    files = [str(file) for file in path.parent.glob("*.y*ml")]
    if is_yaml:
        must = f"a preset must be a shipped name or an existing file, got {path} in {Path.cwd()}"
        raise InputError(must + meant(str(path), files))
    _check_kind(str(preset), "preset")
    known = _presets()
    if str(preset) not in known and path.is_file():
        raise InputError(
            f"a preset must be a .yaml file, got {path}: `dice-ray init {shlex.quote(str(preset))}` writes one for a "
            "file of data"
        )
    if str(preset) not in known:
        raise UnknownNameError("preset", str(preset), [*known, *files])
    return known[str(preset)]


def preset_of(preset: Preset) -> str | Path:
    """The preset itself, or the file of the one that is written for data given in Python: `tables.preset_of`."""
    if isinstance(preset, str | Path):
        return preset
    from dice_ray.config.load import read_layer
    from dice_ray.run import tables

    data = preset if isinstance(preset, tables.Tables) else tables.Tables(preset)
    return tables.preset_of(data, None if data.preset is None else read_layer(preset_file(data.preset)))


def _presets() -> dict[str, Path]:
    """The shipped presets: file by name."""
    return {path.stem: path for path in sorted(folder_of("search_spaces").glob("presets/*.yaml"))}


def spaces() -> dict[str, str]:
    """The shipped spaces: modules with a function of their own name that takes a trial."""
    files = sorted(folder_of("search_spaces").glob("*.py"))
    return {file.stem: f"search_spaces.{file.stem}" for file in files if f"\ndef {file.stem}(trial" in file.read_text()}


def space_address(space: str) -> str:
    """The address of a shipped `loss_tuning` or `loss_tuning:focal`; any other address as it is."""
    where, _, function = space.partition(":")
    if where in (known := spaces()):
        return f"{known[where]}:{function or where}"
    if not function:
        if space.endswith(".py"):
            raise InputError(f"a space must be a function, as {space}:FUNCTION, got {space}")
        raise UnknownNameError("space", space, known)
    return space


def _studies() -> dict[str, str]:
    """The shipped studies: module by name."""
    files = sorted(folder_of("search_spaces").glob("studies/*.py"))
    return {file.stem: f"search_spaces.studies.{file.stem}" for file in files if file.stem != "__init__"}


def read_study(study: str) -> StudyFile:
    """A shipped study by its name, or one in a Python file.

    Raises:
        UnknownNameError: There is no such study, or BASELINE is not one of its arms.
        InputError: The file does not define a study.
    """
    folder_of("analysis")
    from analysis.comparison import is_row
    from dice_ray.tuning import study_file

    _check_kind(study, "study")
    known = _studies()
    if not study.endswith(".py") and study not in known:
        raise UnknownNameError("study", study, known)

    return study_file.read_study(study, known.get(study, study), is_row, space_address)


def _check_kind(name: str, wanted: Literal["preset", "study"]) -> None:
    """Raise an InputError with the right command if a name is that of another kind of thing than the wanted one."""
    quoted = shlex.quote(name)
    use = f"`dice-ray train {quoted}` trains on it, `dice-ray ablate loss_comparison --data {quoted}` compares losses"
    known: dict[str, tuple[Mapping[str, object], str]] = {
        "preset": (_presets(), use),
        "study": (_studies(), f"`dice-ray ablate {name}` runs it"),
        "search space": (spaces(), f"`dice-ray tune PRESET --space {name}` searches it"),
    }
    is_file = Path(name).suffix in (".yaml", ".yml")
    for kind, (names, command) in known.items():
        if kind != wanted and name not in known[wanted][0] and (name in names or (is_file and kind == "preset")):
            raise InputError(f"{name} is a {kind}, not a {wanted}: {command}")


def names() -> dict[str, list[str]]:
    """The names of presets, tasks, losses, spaces and studies."""
    from dice_ray.losses import LossConfig
    from dice_ray.settings import branches_of
    from dice_ray.tasks import TaskConfig

    return {
        "presets": list(_presets()),
        "tasks": list(branches_of(TaskConfig)),
        "losses": list(branches_of(LossConfig)),
        "spaces": list(spaces()),
        "studies": list(_studies()),
    }


def losses(name: str | None = None) -> list[LossRow]:
    """The registered losses, or the one of this name: formula, parameters with their defaults, scope, source.

    Raises:
        UnknownNameError: There is none.
    """
    from dice_ray.losses.table import rows

    known = {row.name: row for row in rows()}
    if name is not None and name not in known:
        raise UnknownNameError("loss", name, known)
    return [*known.values()] if name is None else [known[name]]


def preset_titles() -> dict[str, str]:
    """The title of each shipped preset by its name: the comment that its file begins with."""
    titles = {}
    for name, file in _presets().items():
        lines = (line.removeprefix("#").strip() for line in file.read_text(encoding="utf-8").splitlines())
        titles[name] = " ".join(takewhile(lambda line: not line.startswith(("Data:", "Source:")), lines))
    return titles


def plot_losses(file: Path) -> None:
    """Draw the derivatives of the losses, as the paper's Figure 1 and corrected."""
    file = Path(file)
    if file.suffix not in (".png", ".svg", ".pdf") or not file.absolute().parent.is_dir():
        raise InputError(f"a picture must be a .png, .svg or .pdf in an existing folder, got {file}")
    folder_of("analysis")
    from analysis.figures.paper import figure_1
    from dice_ray.files import check_output, whole_output

    check_output(file)
    with whole_output(file) as unfinished:
        figure_1().save(unfinished)
