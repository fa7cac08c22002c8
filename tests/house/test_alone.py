"""The losses beside torch alone, and a comparison beside pandas and SciPy alone: no other package is there."""

from __future__ import annotations

import subprocess
import sys

import pytest

PYDANTIC = {"pydantic", "pydantic_core", "annotated_types", "typing_extensions", "typing_inspection"}
TORCH = {"torch", "torchgen", "numpy", "sympy", "mpmath", "filelock", "networkx", "jinja2", "markupsafe", "fsspec"}
PANDAS = {"pandas", "scipy", "numpy", "dateutil", "six"}
OURS = {"dice_ray", "analysis", "search_spaces"}

HIDING = """
import sys

class Hiding:
    @staticmethod
    def find_spec(name, path=None, target=None):
        package = name.partition(".")[0]
        if not package.startswith("_") and package not in sys.stdlib_module_names and package not in THERE:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Hiding)
"""

LOSSES = """
import torch

import dice_ray.losses.hf
import dice_ray.losses.reduction
from dice_ray import losses
from dice_ray.terms import TermFacts

facts = TermFacts("tag", "softmax", classes=("O", "PER", "LOC"), counts=(80, 15, 5), background=0)
for name in sorted({each for each in losses.__all__ if each.endswith("Config")} - OTHERS):
    logits, config = torch.zeros(4, 3, requires_grad=True), getattr(losses, name)()
    if "softmax" in config.supported and not config.problems(facts, "loss"):
        config.build(facts)(logits, torch.tensor([0, 1, 2, -100])).backward()
        assert logits.grad.isfinite().all()
        print(name)
"""

COMPARE = """
import pandas as pd

import dice_ray

runs = [{"loss": loss, "seed": seed, "f1": 0.5 + seed / 100 + (loss == "dice") * (0.1 + seed / 1000)}
        for loss in ("ce", "dice") for seed in range(6)]
compared = dice_ray.compare(pd.DataFrame(runs), metric="f1", arm="loss", baseline="ce")
print(compared.verdict)
compared.report()
print(*compared.table["arm"])
"""


def _run_beside(packages: set[str], code: str) -> list[str]:
    program = f"THERE = {packages | PYDANTIC | OURS!r}\n{HIDING}\n{code}"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.splitlines()


def test_what_is_hidden_is_not_there() -> None:
    """A blocker that blocks nothing would let the tests below pass."""
    with pytest.raises(AssertionError, match="No module named 'numpy'"):
        _run_beside(TORCH - {"numpy"}, "import numpy")


def test_the_losses_need_torch_and_pydantic_alone() -> None:
    """An import of Ray, MLflow or transformers on the way to a loss."""
    built = _run_beside(TORCH, LOSSES.replace("OTHERS", "{'LossConfig', 'CustomConfig'}"))
    assert {"CrossEntropyConfig", "DiceConfig", "TverskyConfig"} < set(built)


def test_a_comparison_needs_pandas_scipy_and_pydantic_alone() -> None:
    """An import of torch, MLflow, Matplotlib or PyYAML on the way to a verdict."""
    *verdict, arms = _run_beside(PANDAS, COMPARE)
    assert "dice" in "".join(verdict)
    assert arms == "dice ce"
