"""Names of presets, tasks, losses, spaces and studies; the table and the drawing of the losses."""

from __future__ import annotations

from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from dice_ray.api import shipped
from dice_ray.errors import InputError, UnknownNameError

if TYPE_CHECKING:
    from dice_ray.losses.table import LossRow


def names() -> dict[str, list[str]]:
    """The names of presets, tasks, losses, spaces and studies."""
    from dice_ray.losses import LossConfig
    from dice_ray.settings import branches_of
    from dice_ray.tasks import TaskConfig

    return {
        "presets": list(shipped.presets()),
        "tasks": list(branches_of(TaskConfig)),
        "losses": list(branches_of(LossConfig)),
        "spaces": list(shipped.spaces()),
        "studies": list(shipped.studies()),
    }


def losses() -> list[LossRow]:
    """The registered losses: formula, parameters with their defaults, scope, source."""
    from dice_ray.losses.table import rows

    return rows()


def loss(name: str) -> LossRow:
    """The registered loss of this name.

    Raises:
        UnknownNameError: There is none.
    """
    known = {row.name: row for row in losses()}
    if name not in known:
        raise UnknownNameError("loss", name, known)
    return known[name]


def preset_titles() -> dict[str, str]:
    """The title of each shipped preset by its name: the comment that its file begins with."""
    titles = {}
    for name, file in shipped.presets().items():
        lines = (line.removeprefix("#").strip() for line in file.read_text(encoding="utf-8").splitlines())
        titles[name] = " ".join(takewhile(lambda line: not line.startswith(("Data:", "Source:")), lines))
    return titles


def plot_losses(file: Path) -> None:
    """Draw the derivatives of the losses, as the paper's Figure 1 and corrected."""
    if file.suffix not in (".png", ".svg", ".pdf") or not file.absolute().parent.is_dir():
        raise InputError(f"a picture must be a .png, .svg or .pdf in an existing folder, got {file}")
    shipped.folder_of("analysis")
    from analysis.figures.paper import figure_1
    from dice_ray.files import check_output, whole_output

    check_output(file)
    with whole_output(file) as unfinished:
        figure_1().save(unfinished)
