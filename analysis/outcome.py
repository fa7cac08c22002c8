"""The outcome of an experiment: the summary in sentences, and what MLflow shows on the parent run."""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from analysis.comparison import comparisons
from analysis.data_sets import sentence_over_data_sets
from analysis.formats import ScoreFormat
from analysis.frames import Findings, of_kind, scores, states, tag_values
from analysis.paper.tables import why_not_on_paper_data
from analysis.sweep import LEAST_TRIALS, best_trial, too_few
from analysis.tables.base import in_markdown
from analysis.verdict import verdicts
from analysis.verdict.decision import Decision, decide
from dice_ray.errors import counted
from dice_ray.tracking import schema


def metrics(findings: Findings) -> dict[str, float]:
    """Mean and interval of each arm, `test/f1/dice`, `test/f1_low/dice`, `test/f1_high/dice`; or the best score.

    Of a study of drawn settings: the score of each arm at the budget of its verdict, `test/f1 best of 4/dice`. The
    names have the place between metric and arm where a study compares on several data sets, encoders or variants.
    """
    found: dict[tuple[str, ...], float] = {}
    made = verdicts(findings)
    for each in made:
        place = (each.place,) if len(made) > 1 else ()
        found |= {(metric, *place, arm): value for (metric, arm), value in each.metrics.items()}
    if best := best_trial(findings):
        found[(schema.sibling(best.metric, "best"),)] = best.score
    return _by_name(found)


def note(findings: Findings, name: str) -> str:
    """The user's own note, then the summary of the report as a list in Markdown, its first sentence bold."""
    own = tag_values(findings.frame[findings.frame["id"] == name], schema.OWN_NOTE)
    sentences = [*map(in_markdown, summary(findings))]  # empty if MLflow does not hold the runs yet, or no more
    headline = [f"**{sentence}**" for sentence in sentences[:1]]
    parts = [*map(str, own.dropna()), *headline, "\n".join(f"- {sentence}" for sentence in sentences[1:])]
    return "\n\n".join(filter(None, parts))


def _over_places(decisions: Sequence[Decision]) -> Iterator[str]:
    """Where arms are better on some data sets and worse on others, or other arms win: nothing holds for all of them."""
    places: dict[str, dict[str, list[str]]] = {}
    winners: dict[str, list[str]] = {}
    for each in decisions:
        for arm, standing in each.standings:
            places.setdefault(arm.name, {}).setdefault(standing, []).append(each.comparison.place)
        if each.outcome == "winner" and each.comparison.best:
            winners.setdefault(each.comparison.best.name, []).append(each.comparison.place)
    for name, by_standing in places.items():
        if {"better", "worse"} <= by_standing.keys():
            better, worse = (", ".join(by_standing[standing]) for standing in ("better", "worse"))
            yield f"{name} is better on {better} and worse on {worse}."
    if len(winners) > 1:
        elsewhere = "; ".join(f"{arm} on {', '.join(on)}" for arm, on in winners.items())
        yield f"Other arms win elsewhere: {elsewhere}."


def _by_name(values: Mapping[tuple[str, ...], float]) -> dict[str, float]:
    """The values by names that MLflow accepts, each with a name of its own; a key is a metric, then place and arm.

    A name leaves out the characters that MLflow does not accept. If that makes it the name of another value, or MLflow
    does not accept it as a path, place and arm are cut and followed by a hash.

    >>> sorted(_by_name({("test/f1", "dice (tuned)"): 0.5, ("test/f1", "a/../b"): 0.5}))
    ['test/f1/a b. 684c7f58', 'test/f1/dice tuned']
    """
    whole = {parts: "/".join(parts) for parts in values}
    short = {parts: re.sub(r"[^\w./ :-]", "", name) for parts, name in whole.items()}
    uses = Counter(short.values())
    found = {}
    for parts, value in values.items():
        name = short[parts]
        # A name from which nothing is left out stays when another arm is added.
        is_own = uses[name] == 1 or name == whole[parts]
        # MLflow may store metrics as files, and refuses a name that is not the shortest one of its path.
        is_accepted = len(name) <= 250 and posixpath.normpath(name) == name
        if not is_own or not is_accepted:
            words = " ".join(re.findall(r"[\w-]+", " ".join(parts[1:])))[:100]
            name = f"{parts[0]}/{words}. {hashlib.sha256(repr(parts).encode()).hexdigest()[:8]}"
        found[name] = value
    return found


def summary(findings: Findings, *, below_cards: bool = False) -> Iterator[str]:
    """The sentences, the most important first; below the cards of verdicts, theirs are not repeated."""
    compared = comparisons(findings)
    yield from sentence_over_data_sets(compared)
    made = verdicts(findings)
    if len(compared) > 1:
        yield from _over_places([*map(decide, compared)])
    for each in made:
        prefix = f"On {each.place}: " if len(made) > 1 else ""
        yield from (f"{prefix}{sentence}" for sentence in each.sentences[each.num_in_card * below_cards :])
    parents = of_kind(findings.frame, "run", "sweep", "study")
    for tag in (schema.FEW_ITEMS, schema.CAUTIONS):
        for warnings in dict.fromkeys(tag_values(parents, tag).dropna()):
            yield from str(warnings).splitlines()
    if why_not := why_not_on_paper_data(findings):
        yield why_not
    if best := best_trial(findings):
        trial_scores = scores(findings.trials, best.metric)
        # As in the table of trials.
        score_format = ScoreFormat.of(best.metric, [best.score, *trial_scores])
        score = f"{score_format.heading(best.metric)} {score_format.show(best.score)}"
        yield f"The best of {counted(len(trial_scores), 'trial')} is {best.id}, with {best.loss}: {score}."
        num_tied = 0 if best.num_reruns else int((trial_scores == best.score).sum())
        if num_tied > 1:
            yield f"{num_tied} trials have this very score."
        criterion = f"the mean over {counted(best.num_reruns, 'other seed')}" if best.num_reruns else "this same score"
        yield f"The search selected it by {criterion} on dev; a study over seeds measures it on the test split."
    if few := too_few(findings.frame):
        counts_by_loss = ", ".join(f"{loss} {num}" for loss, num in few.items())
        yield (
            f"Too few trials to show the importance of hyperparameters: a loss needs {LEAST_TRIALS} scored trials, and "
            f"the sweep has {counts_by_loss}."
        )
    state = states(of_kind(findings.frame, "trial", "rerun", "cell"))
    counts = [f"{(state == name).sum()} {name}" for name in ("failed", "unfinished") if (state == name).any()]
    if counts:
        yield f"Of {counted(len(state), 'run')}, {' and '.join(counts)}; they are listed below."
    elif len(state):
        yield "The run finished." if len(state) == 1 else f"All {len(state)} runs finished."
