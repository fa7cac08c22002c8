"""Losses and spaces given as objects: other processes load them from files."""

from __future__ import annotations

import shlex
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch
from optuna import Trial

import dice_ray
from dice_ray import user_code
from dice_ray.api.library import read_study
from dice_ray.cli import app as command_line
from dice_ray.errors import InputError
from dice_ray.run.own_loss import settings_of, with_loss
from dice_ray.tracking.reader import curves
from dice_ray.tuning import plan_file
from dice_ray.tuning.study import StudyPlan
from dice_ray.tuning.study_file import with_arms
from tests.losses import test_custom

if TYPE_CHECKING:
    from dice_ray.run.own_loss import GivenLoss

pytestmark = pytest.mark.usefixtures("uri")  # to make a store takes as long as a short run

QUICK = {"data.source.synthetic.size": 100, "training.epochs": 1, "training.evaluations": 1}
MODULE = """
import torch

class Scaled(torch.nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.register_buffer("factor", torch.tensor(factor))

    def forward(self, logits, targets):
        return self.factor * torch.nn.functional.cross_entropy(logits, targets)
"""
IN_ANOTHER_PROCESS = """
import sys, torch
from dice_ray.user_code import load
print(load(sys.argv[1])(torch.zeros(2, 2), torch.tensor([0, 1])).item())
"""


def rates(trial: Trial) -> None:
    trial.suggest_float("training.lr", 1e-4, 1e-2, log=True)


def test_a_run_trains_with_a_function_or_a_module_and_is_chosen_by_an_own_metric() -> None:
    dice_ray.train("synthetic_pairs", QUICK, loss="cross_entropy", name="own")
    dice_ray.train("synthetic_pairs", QUICK, loss=test_custom.mean, name="function")
    Path("costs.py").write_text("def saved(targets, predictions): return 10 - predictions.count('1') / len(targets)")
    own = QUICK | {"task.sentence_pair.score": "costs.py:saved"}
    run = dice_ray.train("synthetic_pairs", own, loss=torch.nn.CrossEntropyLoss(), name="module")
    assert run.best.metric == "dev/saved"
    assert 9 <= run.best.score <= 10
    assert dice_ray.evaluate("module").scores.metrics["saved"] > 0
    Path("costs.py").write_text("def saved(targets, predictions): return -predictions.count('1')")
    assert dice_ray.train("synthetic_pairs", own, name="edited").best.score <= 0, "the old function was kept"
    pairs = [("my lamp is late", "we are sorry"), ("thanks", "gladly")]
    assert (
        dice_ray.predict("module", pairs).plain()
        == dice_ray.predict("module", ["\t".join(pair) for pair in pairs]).plain()
    )
    curve = curves("train")
    losses = curve[curve["metric"] == "train/loss"].set_index("id")["value"]
    assert losses["function"] == pytest.approx(losses["own"], rel=1e-5)
    assert losses["module"] == pytest.approx(losses["own"], rel=1e-5)


@pytest.mark.ray
@pytest.mark.usefixtures("on_kept_ray")
def test_a_study_compares_own_losses_with_its_arms_and_its_command_runs_it_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing else finds an own arm that trains with another loss, or a command in a report that lacks these arms."""
    losses: dict[str, GivenLoss] = {"mine": test_custom.mean, "smooth": torch.nn.CrossEntropyLoss(label_smoothing=0.3)}
    study = dice_ray.ablate("loss_comparison", "synthetic_pairs", QUICK, arms=["cross_entropy"], losses=losses, seeds=1)
    cells = study.frame[study.frame["kind"] == "cell"].set_index("arm")
    assert set(cells.index) == {"cross_entropy", "mine", "smooth"}
    loss = cells["metrics.train/loss"]
    assert loss["mine"] == pytest.approx(loss["cross_entropy"], rel=1e-5)
    assert loss["smooth"] != pytest.approx(loss["cross_entropy"], rel=1e-2)
    plan = plan_file.read(study.folder)
    assert isinstance(plan, StudyPlan)
    monkeypatch.setattr("sys.argv", [*shlex.split(plan.command), "--seeds", "1", "--json"])
    with pytest.raises(SystemExit) as exited:
        command_line.main()
    assert exited.value.code == 0
    assert len(dice_ray.api.runs("loss_comparison")) == 3, "cells that are done are kept"


def test_an_own_loss_has_a_name_of_its_own_in_a_study() -> None:
    """Nothing else finds an own loss that silently takes the place of an arm."""
    with pytest.raises(InputError, match="another name than the arms of loss_comparison, got 'dice'"):
        dice_ray.ablate("loss_comparison", losses={"mine": test_custom.mean, "dice": test_custom.mean})


def test_a_module_of_a_file_is_loaded_with_its_values_in_another_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/scaled_loss.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path / "elsewhere")
    import scaled_loss  # type: ignore[import-not-found]

    settings = with_loss({}, scaled_loss.Scaled(3.0))
    assert isinstance(settings, dict)
    address = settings["loss.custom.target"]
    command = [sys.executable, "-c", IN_ANOTHER_PROCESS, address]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert float(done.stdout) == pytest.approx(3 * 0.6931472), done.stderr
    assert with_loss({}, scaled_loss.Scaled(3.0)) == settings
    assert with_loss({}, scaled_loss.Scaled(4.0)) != settings
    # The source of the class is part of the loss, which a study must not take for another one's.
    (tmp_path / "elsewhere/scaled_loss.py").write_text(MODULE.replace("self.factor *", "2 *"))
    assert with_loss({}, scaled_loss.Scaled(3.0)) != settings


def test_a_function_has_the_address_of_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    address = user_code.address_of(rates)
    assert address == f"{Path(__file__)}:rates"
    assert user_code.address_of(torch.nn.functional.cross_entropy) == "torch.nn.functional:cross_entropy"
    monkeypatch.setattr(rates, "__module__", "__main__")
    monkeypatch.setattr(sys.modules["__main__"], "rates", rates, raising=False)
    spaces: list[Callable[..., None]] = [rates, lambda trial: None]
    for given in spaces:
        with pytest.raises(InputError, match=r"at the top of a file .* a cell that begins with %%writefile"):
            dice_ray.tune("synthetic_pairs", space=given)
    with pytest.raises(InputError, match="reduction 'sum'"):
        dice_ray.train("synthetic_pairs", loss=torch.nn.CrossEntropyLoss(reduction="sum"))
    locked = torch.nn.CrossEntropyLoss()
    locked.lock = threading.Lock()  # type: ignore[assignment]
    with pytest.raises(InputError, match=r"tensors, numbers and texts alone, .* CrossEntropyLoss does not: .*lock"):
        dice_ray.train("synthetic_pairs", loss=locked)


def test_a_stored_loss_runs_no_code_but_that_of_its_classes() -> None:
    """The file was loaded with torch's `weights_only=False`, which calls whatever a pickle names."""
    settings = with_loss({}, torch.nn.CrossEntropyLoss(weight=torch.tensor([1.0, 3.0]), label_smoothing=0.1))
    assert isinstance(settings, dict)
    address = settings["loss.custom.target"]
    assert user_code.load(address).weight.tolist() == [1, 3]  # type: ignore[attr-defined]
    assert "weights_only=False" not in Path(address.rpartition(":")[0]).read_text()
    calling = torch.nn.CrossEntropyLoss()
    calling.then = torch.nn.functional.relu  # type: ignore[assignment]
    with pytest.raises(InputError, match=r"it holds torch\.nn\.functional\.relu; give a function, or the class"):
        with_loss({}, calling)


def test_a_study_of_drawn_settings_keeps_them_beside_a_loss_of_ones_own() -> None:
    """Finds draws of one search that are compared as data sets."""
    Path("drawn.py").write_text('ARMS = {"ce": {}}\nBASELINE = "ce"\nSETTINGS = {"1": {"training.lr": 1e-3}}\n')
    before = read_study("drawn.py")
    after = read_study(with_arms("drawn.py", before, {"mine": settings_of(test_custom.mean)}))
    assert (after.variants, after.variants_are) == (before.variants, "settings")
    assert list(after.arms) == ["ce", "mine"]
    Path("spaced.py").write_text(
        "from search_spaces.optimizer_tuning import optimizer_tuning as SPACE\nfrom search_spaces import loss_tuning\n"
        'ARMS = {"ce": {}, "dice": {"loss": "dice"}}\nBASELINE = "ce"\nSPACES = {"dice": loss_tuning.dice}\n'
    )
    before = read_study("spaced.py")
    after = read_study(with_arms("spaced.py", before, {"mine": settings_of(test_custom.mean)}))
    assert (after.space, after.spaces) == (before.space, before.spaces) != (None, {})
