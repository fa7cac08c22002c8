"""The card of a verdict: it has the words of the decision, the sizes that a study stored, and the command to go on."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace

import pandas as pd
import pytest

from analysis.comparison import comparisons
from analysis.frames import Findings
from analysis.outcome import note
from analysis.report import report
from analysis.statistics.intervals import paired_difference
from analysis.verdict import verdicts
from analysis.verdict.base import Card, card_of
from analysis.verdict.over_seeds import _ONE_SEARCH
from tests.analysis.frames import study

CLOSE = {"plain": [0.70, 0.72, 0.69, 0.71, 0.70], "dice": [0.72, 0.70, 0.72, 0.71, 0.72]}
DATA = {
    "sizes": {"train": 2000, "dev": 1000, "test": 1200},
    "rarest": {"dev": {"label": "refund", "count": 98}, "test": {"label": "refund", "count": 103}},
}


def found(
    scores: dict[str, list[float]], data: object = DATA, care: str | None = None, looks: str | None = None, **tags: str
) -> Findings:
    columns = {f"tags.{name}": value for name, value in tags.items()}
    made = study(
        {"arm": arm, "seed": seed, "metrics.test/f1": score, **columns}
        for arm, of_arm in scores.items()
        for seed, score in enumerate(of_arm)
    )
    command = "dice-ray ablate mine.py --data 'my data.yaml'"
    of_study = {"tags.command": command, "tags.care": care, "tags.looks": looks}
    made.frame.loc[made.frame["kind"] == "study", [*of_study]] = [*of_study.values()]
    return replace(made, texts=lambda runs, file: {"study": json.dumps(data)} if file == "data.json" else {})


def cards(findings: Findings) -> list[Card]:
    return [card_of(made, findings) for made in verdicts(findings)]


def test_an_open_question_has_its_command_in_every_format() -> None:
    """Finds a card that decides by itself, names other sizes than the stored ones, or asks for other cells."""
    findings = found(CLOSE, care="1", looks="5", encoder="tiny")
    (card,), (made,) = cards(findings), verdicts(findings)
    assert made.more is not None
    assert card.answer == made.answer == "NO"
    assert card.lines == {
        "use": "plain, since no arm is shown to be better",
        "design": "as given: no search; each arm has the settings of its definition",
        "seeds": "5, declared before the first run",
        "what matters": "differences of more than 1 (declared)",
        "data": "tiny",
        "dev": "1,000 rows, 98 of them refund (the rarest class that is scored)",
        "test": "1,200 rows, 103 of them refund (the rarest class that is scored)",
        "metric": "test/f1",
        "certainty": "covers other seeds on this test set, with the settings of this study; not other settings",
        "to settle it": f"dice-ray ablate mine.py --data 'my data.yaml' --arm plain --arm dice --seeds {made.more.num}",
    }
    whole = report(findings)
    assert whole.text().splitlines()[2] == "Is an arm better than plain? NO"
    for text in (whole.text(), whole.markdown(), whole.html(), whole._repr_html_()):
        assert text.index("Is an arm better than plain?") < text.index("No arm is shown to be better")
        assert f"--seeds {made.more.num}" in text
    assert re.findall("<dd><code>(.*?) ", whole.html()) == ["dice-ray"]


@pytest.mark.parametrize(
    ("scores", "says"),
    [
        ([0.7, 0.72, 0.69, 0.71, 0.7], r"passed: plain .* found for dice is not told apart from plain, [-+]\d.* \[-"),
        (
            [0.6, 0.61, 0.6, 0.6, 0.61],
            r"failed: plain .* found for dice differs significantly from plain, -1\d\.\d\d",
        ),
        ([0.7, 0.72], r"not known: .* minus plain is \+0.50 .* over 2 of the 5 seeds needed$"),
        ([0.81, 0.8, 0.8, 0.82, 0.79], r"not known: .* minus plain is \+10.00 with all seeds$"),
    ],
)
def test_the_control_of_a_tuned_study_is_no_arm_and_says_whether_it_passed(scores: list[float], says: str) -> None:
    """Finds a control that wins, that is corrected or counted with the arms, or that fails unsaid."""
    plain, dice = [0.71, 0.7, 0.7, 0.72, 0.69], [0.81, 0.8, 0.81, 0.82, 0.79]
    without = found({"plain": plain, "dice": dice}, tuned="search 0001, best of 6")
    findings = found(
        {"plain": plain, "dice": dice, "control_dice": scores},
        tuned="search 0001, best of 6",
    )
    findings.frame["tags.control"] = findings.frame["arm"].map({"control_dice": "dice"})
    (compared,), (expected,) = comparisons(findings), comparisons(without)
    assert compared.arms == expected.arms
    (control,) = compared.controls
    assert control.difference == paired_difference(dict(enumerate(scores)), dict(enumerate(plain)))
    (card,), (card_without,) = cards(findings), report(without).cards
    assert re.match(says, card.lines["control"])
    failed = " (no evidence about its loss: the control failed)" if says.startswith("failed") else ""
    assert {**card.lines, "control": ""} == {**card_without.lines, "control": "", "use": card_without.use + failed}
    (made,) = verdicts(findings)
    assert made.headline.startswith(f"{_ONE_SEARCH}. CONTROL FAILED: no" if failed else f"{_ONE_SEARCH}. ")
    assert ("CONTROL FAILED" in made.headline) is bool(failed)
    assert f"Control {card.lines['control']}." in report(findings).summary
    assert "control" not in card_without.lines


SHARED = {"shared": "optimizer 0003, cross_entropy, best of 12"}
TUNED = {"tuned": "search 0001, best of 6"}


@pytest.mark.parametrize(
    ("tags", "design", "certainty"),
    [
        (SHARED, r"shared settings: searched once \(optimizer 0003, cross_entropy, best of 12\), the same", "shared"),
        (
            {**SHARED, **TUNED},
            r"shared settings: .* then the parameters of the loss alone \(dice, search 0001, best of 6\)",
            "shared",
        ),
        (TUNED, f"tuned each: {_ONE_SEARCH}", "not another search, which would find other settings for each tuned arm"),
    ],
)
def test_every_format_names_the_design_and_what_its_certainty_covers(
    tags: dict[str, str], design: str, certainty: str
) -> None:
    """Finds one search for each arm that is read as a comparison of losses, and shared settings that are not."""
    findings = found({"plain": [0.71, 0.7, 0.7, 0.72, 0.69], "dice": [0.81, 0.8, 0.79, 0.83, 0.8]}, **tags)
    findings.frame["tags.tuned"] = findings.frame["arm"].map({"dice": tags.get("tuned")})
    (card,), whole = cards(findings), report(findings)
    assert re.match(design, card.lines["design"])
    assert certainty in card.lines["certainty"]
    is_one_search = tags == TUNED
    assert card.use == f"dice{' (the settings that its search found, not the loss)' * is_one_search}"
    (forest,) = [figure for figure in whole.figures if figure.name == "forest"]
    captions = [whole.tables[0].title, forest.title]
    assert [("found by one search for each arm" in caption) for caption in captions] == [is_one_search] * 2
    texts = [
        card.sentences[0],
        note(findings, "study").partition("\n")[0],
        whole.text(),
        whole.markdown(),
        whole.html(),
    ]
    assert [_ONE_SEARCH in text for text in texts] == [is_one_search] * 5
    assert ("No arm is tuned" in whole.text()) is False
    assert ("All arms share the settings found by optimizer 0003" in whole.text()) is not is_one_search


def test_the_control_of_shared_settings_is_the_baseline_with_equal_weights() -> None:
    """Finds a control whose name says that settings differ, though all arms have the same."""
    plain = [0.71, 0.7, 0.7, 0.72, 0.69]
    scores = {"plain": plain, "dice": [0.8] * 5, "control_plain": [score - 0.1 for score in [*plain[1:], plain[0]]]}
    findings = found(scores, **SHARED)
    findings.frame["tags.control"] = findings.frame["arm"].map({"control_plain": "plain"})
    (card,) = cards(findings)
    says = r"failed: plain with equal class weights differs significantly from plain, -10.* The same loss makes such"
    assert re.match(says, card.lines["control"])


def test_each_variant_has_its_card_and_sizes() -> None:
    """Finds the sizes of one variant on the card of another, and all words called the rarest class."""
    small = {"sizes": {"dev": 10, "test": 20}, "rarest": {"test": {"label": "words", "count": 300, "together": True}}}
    frames = [found(CLOSE, variant=name).frame for name in ("whole", "small")]
    frame = pd.concat([frames[0], frames[1][frames[1]["kind"] == "cell"]], ignore_index=True)
    findings = replace(found(CLOSE, {"whole": DATA, "small": small}), frame=frame)
    whole, other = report(findings).cards
    assert (whole.name, whole.facts["test"]) == (
        "whole",
        "1,200 rows, 103 of them refund (the rarest class that is scored)",
    )
    assert (other.name, other.facts["test"]) == ("small", "20 rows, 300 words")
    assert other.facts["dev"] == "10 rows"


def test_a_study_of_an_older_version_names_seeds_and_arms() -> None:
    findings = found(CLOSE, care="1")
    frame = findings.frame.drop(columns="tags.command")
    (card,) = cards(replace(findings, frame=frame))
    assert not card.is_command
    assert card.settle.startswith("the same study with ")
    assert card.settle.endswith(" seeds of plain, dice")


def test_a_control_without_a_score_is_not_taken_for_the_baseline_with_other_seeds() -> None:
    """Finds a control of which no run has a score yet, whose name is guessed from the seeds of its scores."""
    findings = found({"plain": [0.8, 0.81, 0.79, 0.8, 0.82], "dice": [0.8] * 5, "control_plain": [math.nan] * 5})
    findings.frame["tags.control"] = findings.frame["arm"].map({"control_plain": "plain"})
    (verdict,) = verdicts(findings)
    assert verdict.facts["control"].startswith("not known: plain with equal class weights")
