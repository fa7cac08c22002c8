"""The verdict of each comparison at a glance: can the arms be told apart, what to use, and what would settle it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from analysis.comparison import Comparison, comparisons
from analysis.decision import MoreSeeds, ToldApart, Verdict, verdict
from analysis.frames import Findings, parent_tag
from analysis.statistics.intervals import FEW_SEEDS
from analysis.statistics.power import MOST_SEEDS
from analysis.tables.base import in_latex, in_markdown
from analysis.wording import arm_to_use, certainty, controls, design, has_failed_control, is_one_search, question
from dice_ray.errors import RunError, counted, one_line
from dice_ray.tracking import schema

CAUTION: Final = (
    "a test after each addition of seeds finds a difference that is none in more than 5 % of studies: for a claim, "
    "choose the number of seeds before the first look"
)


@dataclass(frozen=True)
class Card:
    """The first thing that a report of a study shows; its words are those of the verdict.

    Attributes:
        name: What is compared, where a report has several cards; else empty.
        question: About the arms.
        answer: To the question.
        use: The arm to use, or several of which none is shown to be better; arms that were each tuned by a search stand
            for settings.
        facts: What was tuned, why no arm wins, data set, size of its splits, metric, seeds and controls, by label; an
            empty one is not shown.
        settle: What would settle an open question; empty if it is settled or no number of seeds would.
        is_command: Whether `settle` is a command to copy.
        is_tested: Whether differences were tested, so that the test after `settle` is another one.
    """

    name: str
    question: str
    answer: ToldApart
    use: str
    facts: Mapping[str, str]
    settle: str = ""
    is_command: bool = False
    is_tested: bool = False

    @property
    def lines(self) -> dict[str, str]:
        """All lines under the answer, by label."""
        settle = {"to settle it": self.settle} if self.settle else {}
        settle |= {"caution": CAUTION} if self.is_command and self.is_tested else {}
        return {"use": self.use, **{label: text for label, text in self.facts.items() if text}, **settle}

    @property
    def title(self) -> str:
        return f"{self.name}: {self.question}" if self.name else self.question

    def text(self) -> str:
        """The card for a terminal."""
        width = max(map(len, self.lines))
        lines = [f"  {label.ljust(width)}  {one_line(text)}" for label, text in self.lines.items()]
        return "\n".join([f"{one_line(self.title)} {self.answer}", *lines])

    def markdown(self) -> str:
        """The card as GitHub's Markdown."""
        return "\n".join(
            [
                f"**{in_markdown(self.title)} {self.answer}**",
                "",
                *(f"- {label}: {in_markdown(text)}" for label, text in self.lines.items()),
            ]
        )

    def latex(self) -> str:
        """The card as lines of a LaTeX document."""
        lines = [rf"{label}: {in_latex(text)}\par" for label, text in self.lines.items()]
        return "\n".join([rf"\textbf{{{in_latex(self.title)} {self.answer}}}\par", *lines])


def cards(findings: Findings) -> tuple[Card, ...]:
    """A card for each comparison of a study."""
    compared = comparisons(findings)
    return tuple(_card(each, each.place if len(compared) > 1 else "", findings) for each in compared)


def _card(compared: Comparison, name: str, findings: Findings) -> Card:
    made = verdict(compared)
    facts = {
        "design": design(made),
        "winner": f"none: {made.why_no_winner}" if made.outcome == "different" else "",
        "data": compared.place,
        **_sizes(compared, findings),
        "metric": compared.metric,
        "seeds": str(made.num_seeds or ""),
        "certainty": certainty(made) if made.compared else "",
        "control": "; ".join(controls(made)),
    }
    settle, is_command = _settle(made, findings)
    use = arm_to_use(made)
    if made.different:
        use += " (the settings that its search found, not the loss)" if is_one_search(compared) else ""
        use += " (no evidence about its loss: the control failed)" if has_failed_control(compared) else ""
    is_tested = made.num_seeds >= FEW_SEEDS
    return Card(name, question(made), made.answer, use, facts, settle, is_command, is_tested)


def _sizes(compared: Comparison, findings: Findings) -> dict[str, str]:
    """The rows of dev and test and their rarest class, as stored at the start of the study."""
    stored = findings.data_of(compared.cells)
    rarest = {
        split: f", {found['count']:,} {found['label']}"
        if found.get("together")
        else f", {found['count']:,} of them {found['label']} (the rarest class that is scored)"
        for split, found in stored.get("rarest", {}).items()
    }
    sizes = {split: f"{stored['sizes'][split]:,} rows" for split in ("dev", "test") if split in stored.get("sizes", {})}
    return {split: f"{size}{rarest.get(split, '')}" for split, size in sizes.items()}


def _settle(made: Verdict, findings: Findings) -> tuple[str, bool]:
    """What to run, and whether it is a command."""
    if made.more is None:
        return f"no study: not even {MOST_SEEDS} seeds would show {made.too_small}" if made.too_small else "", False
    return command_of(made.more, findings)


def command_of(more: MoreSeeds, findings: Findings) -> tuple[str, bool]:
    """The command that runs a study with more seeds, and whether it is one: older versions have not stored theirs."""
    try:
        return shlex.join(more.words(parent_tag(findings.frame, schema.COMMAND))), True
    except RunError:
        of = f" of {', '.join(more.arms)}" if more.arms else ""
        return f"the same study with {counted(more.num, 'seed')}{of}", False
