"""Two examples of each command, which its `--help` ends with."""

from __future__ import annotations

EXAMPLES: dict[str, tuple[str, str]] = {
    "init": (
        "dice-ray init train.tsv --test test.tsv --out mine.yaml",
        "dice-ray init tickets.csv --text-column body --label-column urgent",
    ),
    "inspect": (
        "dice-ray inspect mine.yaml  # also writes CSV files and a plot",
        "dice-ray inspect mrpc wnut17 mine.yaml --out counts",
    ),
    "validate": (
        "dice-ray validate mine.yaml",
        "dice-ray validate mrpc --set loss.focal.gamma=3",
    ),
    "train": (
        "dice-ray train mine.yaml --set loss=dice --name first",
        "dice-ray train mrpc --set training.epochs=5 --dry-run  # only an estimate",
    ),
    "tune": (
        "dice-ray tune mine.yaml --trials 32 --max-hours 2 --name search",
        "dice-ray tune mrpc --space joint_tuning:focal --seeds 3",
    ),
    "ablate": (
        "dice-ray ablate loss_comparison --data mine.yaml --seeds 10 --name losses",
        "dice-ray ablate mining --data mrpc --arm cross_entropy --dry-run",
    ),
    "resume": (
        "dice-ray resume search",
        "dice-ray resume search --trials 32  # 32 more",
    ),
    "doctor": (
        "dice-ray doctor --address head:6379",
        "dice-ray doctor mine.yaml --set launch.gpus=1",
    ),
    "submit": (
        "dice-ray submit -- tune mine.yaml --trials 256 --name search",
        "dice-ray submit --runs /shared/runs --follow -- resume search",
    ),
    "report": (
        "dice-ray report losses --open",
        "dice-ray report losses search --out both  # side by side",
    ),
    "runs": (
        "dice-ray runs  # all experiments",
        "dice-ray runs search --json",
    ),
    "ui": (
        "dice-ray ui",
        "dice-ray ui --port 8080",
    ),
    "export-preset": (
        "dice-ray export-preset search best.yaml",
        "dice-ray export-preset search/0003 third.yaml  # one of its trials",
    ),
    "export-optuna": (
        "dice-ray export-optuna search study.db",
        "dice-ray export-optuna search study.db --json",
    ),
    "predict": (
        "dice-ray predict first new.tsv --out predicted.tsv",
        "cat new.txt | dice-ray predict first - --threshold 0.3",
    ),
    "evaluate": (
        "dice-ray evaluate first test --items items.csv",
        "dice-ray evaluate losses/dice/1 labelled.tsv",
    ),
    "export": (
        "dice-ray export first model",
        "dice-ray export search/0003 --push my-org/model  # to the Hugging Face hub",
    ),
    "list": (
        "dice-ray list",
        "dice-ray list --json",
    ),
    "losses": (
        "dice-ray losses self_adjusting_dice",
        "dice-ray losses --plot derivatives.png",
    ),
    "cache": (
        "dice-ray cache",
        "dice-ray cache --clear --older-than 30d",
    ),
}
"""By the name of the command; `mine.yaml` is what `init` writes, `first` a run, `search` a sweep, `losses` a study."""


def epilog(command: str) -> str:
    """The examples of a command as the end of its help, a paragraph each, since Typer joins single lines."""
    return "\n\n".join(["Examples:", *EXAMPLES[command]])
