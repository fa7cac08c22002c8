"""How far intervals, tests and importance in a report hold: coverage, width and false alarms, by simulation."""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
import optuna
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from analysis.statistics.intervals import holm_of, paired_difference, t_interval
from analysis.statistics.new_data import item_parts, over_seeds_and_items
from analysis.statistics.power import collapse_bound
from analysis.sweep import importances
from tests.benchmarks.equal_budget import equal_budget

Floats: TypeAlias = NDArray[np.floating]
Bounds: TypeAlias = tuple[Floats, Floats]

SCORES = {"0.90": (0.9, 0.01), "0.60": (0.6, 0.05), "0.97": (0.97, 0.02), "0.10": (0.1, 0.08), "0.50": (0.5, 0.25)}
"""Mean and standard deviation of beta distributions, by the name under which they are printed."""
COLLAPSES = (0.0, 0.05, 0.2)
"""Chances of a run to collapse to a score of 0."""
NUM_SEEDS = (2, 3, 5, 10)


def student(scores: Floats) -> Bounds:
    """The plain t interval."""
    num = scores.shape[1]
    half = stats.t.ppf(0.975, num - 1) * scores.std(1, ddof=1) / np.sqrt(num)
    return scores.mean(1) - half, scores.mean(1) + half


def cut_off(scores: Floats) -> Bounds:
    low, high = student(scores)
    return np.clip(low, 0, 1), np.clip(high, 0, 1)


def logit(scores: Floats) -> Bounds:
    """The interval of a report; without spread it has no bounds, and counts here as the mean alone."""
    intervals = [t_interval(each) for each in scores.tolist()]
    low, high = np.array([(each.low, each.high) for each in intervals]).T
    return np.where(np.isnan(low), scores.mean(1), low), np.where(np.isnan(high), scores.mean(1), high)


def bootstrap(scores: Floats) -> Bounds:
    """Bias-corrected and accelerated."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scores without spread have no acceleration
        made = stats.bootstrap((scores,), np.mean, axis=1, n_resamples=400, method="BCa", rng=np.random.default_rng(0))
    low, high = made.confidence_interval
    return np.where(np.isnan(low), scores.mean(1), low), np.where(np.isnan(high), scores.mean(1), high)


def own_points(scores: Floats) -> Bounds:
    return scores.min(1), scores.max(1)


METHODS: dict[str, Callable[[Floats], Bounds]] = {
    "t": student,
    "t cut off": cut_off,
    "t of the logit": logit,
    "BCa": bootstrap,
    "min to max": own_points,
}


def drawn(rng: np.random.Generator, name: str, collapse: float, size: tuple[int, int]) -> tuple[Floats, float]:
    """Scores of runs, and their true mean."""
    mean, spread = SCORES[name]
    scale = mean * (1 - mean) / spread**2 - 1
    return rng.beta(mean * scale, (1 - mean) * scale, size) * (rng.random(size) >= collapse), mean * (1 - collapse)


def means(num_studies: int) -> Iterator[dict[str, Any]]:
    """Coverage (%) of the true mean and mean width (points) of each method."""
    for collapse in COLLAPSES:
        for name in SCORES:
            for num in NUM_SEEDS:
                scores, mean = drawn(np.random.default_rng(0), name, collapse, (num_studies, num))
                row: dict[str, Any] = {"collapse": collapse, "score": name, "seeds": num}
                for method, bounds in METHODS.items():
                    low, high = bounds(scores)
                    covered = (low <= mean + 1e-9) & (mean - 1e-9 <= high)
                    row[method] = f"{100 * covered.mean():.1f} ({100 * (high - low).mean():.1f})"
                yield row


def corrected(num_studies: int) -> Iterator[dict[str, Any]]:
    """Five arms against a baseline over ten seeds, of which some are better by twice the spread."""
    rng = np.random.default_rng(0)
    for num_better in (0, 2, 5):
        false_alarm = all_covered = covered = agree = 0
        for _ in range(num_studies):
            scores = rng.normal(0.7, 0.02, (6, 10))
            better = [0.04 if arm < num_better else 0.0 for arm in range(5)]
            arms = [dict(enumerate(each + more)) for each, more in zip(scores, better, strict=False)]
            made = holm_of([paired_difference(arm, dict(enumerate(scores[5]))) for arm in arms])
            inside = [each.interval.low <= more <= each.interval.high for each, more in zip(made, better, strict=True)]
            false_alarm += any(not ok and not more for ok, more in zip(inside, better, strict=True))
            covered += sum(inside)
            all_covered += all(inside)
            excluded = [each.interval.low > 0 or each.interval.high < 0 for each in made]
            agree += excluded == [each.is_significant for each in made]
        shares = {"an interval excludes a true 0": false_alarm, "all covered": all_covered, "bounds and p agree": agree}
        yield (
            {"better arms": f"{num_better} of 5"}
            | {name: f"{100 * num / num_studies:.1f}" for name, num in shares.items()}
            | {"each covered": f"{20 * covered / num_studies:.1f}"}
        )


def collapsing(num_studies: int) -> Iterator[dict[str, Any]]:
    """An arm that gains a point, or collapses to 0; the baseline is at 80 with a spread of half a point."""
    rng = np.random.default_rng(0)
    for collapse in (0.0, 0.05, 0.1):
        ahead = unseen = 0
        for _ in range(num_studies):
            baseline, collapsed = rng.normal(0.8, 0.005, 10), rng.random(10) < collapse
            arm = np.where(collapsed, 0.0, baseline + rng.normal(0.01, 0.005, 10))
            ahead += paired_difference(dict(enumerate(arm)), dict(enumerate(baseline))).is_ahead
            unseen += not collapsed.any()
        yield {
            "chance to collapse": f"{100 * collapse:.0f}",
            "true difference": f"{100 * (0.01 - collapse * 0.81):+.2f}",
            "told apart, ahead": f"{100 * ahead / num_studies:.1f}",
            "no collapse seen": f"{100 * unseen / num_studies:.1f}",
            "not excluded by 0 of 10": f"{100 * collapse_bound(0, 10):.1f}",
        }


def documents(num_studies: int) -> Iterator[dict[str, Any]]:
    """Two equally good arms over five seeds on the questions of so many articles, 2 to 14 each."""
    for num_documents in (20, 48):
        rng, covered = np.random.default_rng(0), {"by item": 0, "by document": 0}
        widths: dict[str, list[float]] = {name: [] for name in covered}
        for _ in range(num_studies):
            of_item = np.repeat(np.arange(num_documents), rng.integers(2, 15, num_documents))
            tables, stored = {}, {}
            for arm in "ab":
                liking = rng.normal(0.8, 0.8, num_documents)[of_item]
                for seed in range(5):
                    right = liking + rng.normal(0, 1, len(of_item)) > 0
                    table = pd.DataFrame({"tp": right, "fp": ~right, "fn": ~right}).astype(int)
                    tables[f"{arm}{seed}"] = table.assign(document=of_item.astype(str))
                    stored[f"{arm}{seed}"] = float(right.mean())
            bare = {id_: table.drop(columns="document") for id_, table in tables.items()}
            for name, known in (("by document", tables), ("by item", bare)):
                parts = item_parts(known, stored).parts
                arms = [np.stack([parts[f"{arm}{seed}"] for seed in range(5)]) for arm in "ab"]
                interval = over_seeds_and_items(arms[0], arms[1]).interval
                covered[name] += interval.low <= 0 <= interval.high
                widths[name].append(interval.high - interval.low)
        yield {"articles": num_documents} | {
            name: f"{100 * num / num_studies:.1f} ({100 * np.mean(widths[name]):.1f})" for name, num in covered.items()
        }


def importance(num_sweeps: int) -> Iterator[dict[str, Any]]:
    """Sweeps of 40 trials over six parameters; in the second, the first one decides."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")
    for sampler in ("random", "tpe"):
        for effect in (0.0, 0.3):
            named = found = 0
            for seed in range(num_sweeps):
                branches, _ = importances(_sweep(sampler, effect, seed))
                levels = {each.path: each.importance > each.by_chance for each in branches[0].parameters}
                found += levels.pop("p0") if effect else 0
                named += any(levels.values())
            yield {
                "sampler": sampler,
                "parameters with an effect": "p0" if effect else "none",
                "irrelevant one named": f"{100 * named / num_sweeps:.1f}",
                "p0 named": f"{100 * found / num_sweeps:.1f}" if effect else "",
            }


def _sweep(sampler: str, effect: float, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    chosen = (
        optuna.samplers.TPESampler(multivariate=True, group=True, seed=seed)
        if sampler == "tpe"
        else optuna.samplers.RandomSampler(seed=seed)
    )
    study = optuna.create_study(direction="maximize", sampler=chosen)

    def objective(trial: optuna.Trial) -> float:
        for number in (0, 3):
            trial.suggest_float(f"p{number}", 1e-5, 1e-2, log=True)
        for number in (1, 4):
            trial.suggest_float(f"p{number}", 0, 1)
        for number in (2, 5):
            trial.suggest_categorical(f"p{number}", [1, 2, 4])
        return float(rng.normal(0, 0.1) - effect * (np.log10(trial.params["p0"]) + 3) ** 2)

    study.optimize(objective, n_trials=40)
    trials = [
        {"kind": "trial", "state": "done", "params.loss": "dice", "metrics.dev/f1": trial.value}
        | {"tags.searched": " ".join(trial.params)}
        | {f"params.{path}": value for path, value in trial.params.items()}
        for trial in study.trials
    ]
    return pd.DataFrame([{"kind": "sweep", "tags.metric": "dev/f1"}, *trials])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=2000)
    parser.add_argument("--sweeps", type=int, default=100)
    arguments = parser.parse_args()
    sections = {
        "the mean of scores: coverage in % (width in points)": means(arguments.studies),
        "corrected differences, in % of studies": corrected(arguments.studies),
        "an arm that may collapse, ten seeds, in % of studies": collapsing(arguments.studies),
        "a difference on new data: coverage in % (width in points)": documents(max(arguments.studies // 10, 1)),
        "equal arms that are tuned, in % of studies": equal_budget(arguments.studies),
        "importance, in % of sweeps": importance(arguments.sweeps),
    }
    figures = {}
    for title, rows in sections.items():
        figures[title] = list(rows)
        print(f"\n{title}\n{pd.DataFrame(figures[title]).to_string(index=False)}", flush=True)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
