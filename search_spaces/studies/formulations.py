"""Every loss for question answering by position, which few losses support, and by token, which all do: Table 6."""

from __future__ import annotations

from search_spaces.studies import loss_comparison

ARMS = loss_comparison.ARMS
BASELINE = loss_comparison.BASELINE
VARIANTS = {each: {"task.extractive_qa.formulation": each} for each in ("position", "token")}
DATA = ("synthetic_qa",)
