"""What a verdict answers, whatever it is formed from, and the card that shows it at a glance."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import pandas as pd

from analysis.frames import Declared, Findings, parent_tag
from analysis.tables.base import in_markdown
from dice_ray.errors import RunError, counted, one_line
from dice_ray.tracking import schema

_CardAnswer: TypeAlias = Literal["YES", "NO", "NOT YET", "CANNOT SAY", "TOO FEW SEEDS", "TOO FEW RUNS"]
"""Whether an arm is better than the baseline."""
_ANSWERS: Final[dict[str, _CardAnswer]] = {
    "nothing": "TOO FEW RUNS",
    "all_collapsed": "CANNOT SAY",
    "useless": "CANNOT SAY",
    "untested": "CANNOT SAY",
    "flawed": "CANNOT SAY",
    "too_few_seeds": "TOO FEW SEEDS",
    "too_few": "TOO FEW RUNS",
    "not_yet": "NOT YET",
    "open": "NO",
    "settled": "NO",
    "no_difference": "NO",
    "better": "YES",
    "winner": "YES",
}
"""By the outcome of either kind of verdict."""


@dataclass(frozen=True)
class MoreSeeds:
    """The seeds that would answer the question of a study.

    Attributes:
        num: How many in all, those that have run among them; None for those up to the next look.
        arms: The arms to run them with; empty for those that have run.
        noun: `setting` where it takes more drawn settings, each with a seed of its own.
    """

    num: int | None = None
    arms: tuple[str, ...] = ()
    noun: Literal["seed", "setting"] = "seed"

    def words(self, command: str) -> list[str]:
        """The words of the command that runs a study with these seeds.

        Args:
            command: The one that runs it with the seeds that it has, `StudyPlan.command`.
        """
        number = f"--{self.noun}s"
        replaced = {option for option, given in (("--arm", self.arms), (number, self.num)) if given}
        words, arms = shlex.split(command), [word for arm in self.arms for word in ("--arm", arm)]
        words = [word for before, word in zip(["", *words], words, strict=False) if not {before, word} & replaced]
        if self.num:  # it lies beyond the last look, up to which `--until-settled` runs
            words = [word for word in words if word != "--until-settled"]
        return [*words, *arms, *([number, str(self.num)] if self.num else [])]


@dataclass(frozen=True)
class Verdict:
    """What a study shows on one data set, encoder and variant: report, note, card, metrics and result ask nothing else.

    Attributes:
        place: Data set, encoder and variant, as far as they are known.
        metric: The metric that is compared.
        outcome: The decision that all words are formed of.
        question: About the arms.
        use: The arm to use, or several of which none is shown to be better.
        sentences: The headline, how to use an arm, what the headline rests on, and what it does not show.
        facts: What the card says beside these, by label; an empty one is not shown.
        metrics: What MLflow shows, by metric and arm.
        best: The winner and its score.
        more: The seeds that would answer the question; None if it is answered, or if seeds alone do not answer it.
        settle: What would answer it instead of seeds; empty for nothing.
        cells: The cells of whose data the card shows the sizes.
        num_in_card: How many of the sentences the card has.
    """

    place: str
    metric: str
    outcome: str
    question: str
    use: str
    sentences: tuple[str, ...]
    facts: Mapping[str, str]
    metrics: Mapping[tuple[str, str], float]
    best: tuple[str, float] | None = None
    more: MoreSeeds | None = None
    settle: str = ""
    cells: pd.DataFrame | None = None
    num_in_card: int = 1

    @property
    def answer(self) -> _CardAnswer:
        return _ANSWERS[self.outcome]

    @property
    def headline(self) -> str:
        """The outcome in one sentence, after warnings of what keeps it from being about the losses."""
        return self.sentences[0]


@dataclass(frozen=True)
class Card:
    """The first thing that a report of a study shows; its words are those of the verdict.

    Attributes:
        name: What is compared, where a report has several cards; else empty.
        sentences: The outcome in one sentence, then how to use an arm.
        use: The arm to use, or several of which none is shown to be better; arms that were each tuned by a search stand
            for settings.
        facts: What was tuned, why no arm wins, data set, size of its splits, metric, seeds and controls, by label.
        settle: What would settle an open question; empty if it is settled or no number of seeds would.
        is_command: Whether `settle` is a command to copy.
    """

    name: str
    question: str
    answer: _CardAnswer
    sentences: tuple[str, ...]
    use: str
    facts: Mapping[str, str]
    settle: str = ""
    is_command: bool = False

    @property
    def lines(self) -> dict[str, str]:
        """All lines under the sentences, by label; the first ones say what to do."""
        return {
            **({} if self.says_use else {"use": self.use}),
            **({"to settle it": self.settle} if self.settle else {}),
            **self.facts,
        }

    @property
    def says_use(self) -> bool:
        """Whether a sentence says which arm to use, with its decision and score."""
        return any(sentence.startswith("Use ") for sentence in self.sentences)

    @property
    def title(self) -> str:
        return f"{self.name}: {self.question}" if self.name else self.question

    def text(self) -> str:
        """The card for a terminal."""
        width = max(map(len, self.lines), default=0)
        lines = [f"  {label.ljust(width)}  {one_line(text)}" for label, text in self.lines.items()]
        sentences = [f"  {one_line(sentence)}" for sentence in self.sentences]
        return "\n".join([f"{one_line(self.title)} {self.answer}", *sentences, *lines])

    def markdown(self) -> str:
        """The card as GitHub's Markdown."""
        return "\n".join(
            [
                f"**{in_markdown(self.title)} {self.answer}**",
                "",
                *(part for sentence in self.sentences for part in (in_markdown(sentence), "")),
                *(f"- {label}: {in_markdown(text)}" for label, text in self.lines.items()),
            ]
        )


def card_of(verdict: Verdict, findings: Findings, name: str = "") -> Card:
    """The card of a verdict; it has a name where a report has several."""
    settle, is_command = _command(verdict.more, findings) if verdict.more else (verdict.settle, False)
    sizes = {} if verdict.cells is None else findings.sizes_of(verdict.cells)
    facts = dict[str, str]()
    for label, text in verdict.facts.items():
        facts |= ({label: text} if text else {}) | (sizes if label == "data" else {})
    sentences = verdict.sentences[: verdict.num_in_card]
    return Card(name, verdict.question, verdict.answer, sentences, verdict.use, facts, settle, is_command)


def _command(more: MoreSeeds, findings: Findings) -> tuple[str, bool]:
    """The command that runs a study with more seeds, and whether it is one: older versions have not stored theirs."""
    seeds, arms = counted(more.num, more.noun) if more.num else "more seeds", ", ".join(more.arms)
    if Declared.in_frame(findings.frame).compared_by:
        return f"{seeds} of {arms or 'each arm'}", False
    try:
        return shlex.join(more.words(parent_tag(findings.frame, schema.COMMAND))), True
    except RunError:
        return f"the same study with {seeds}{f' of {arms}' if arms else ''}", False
