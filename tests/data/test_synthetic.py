"""Generated corpora: the dials hold, the planted scores stand, seeds repeat."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dice_ray.data.records import digest
from dice_ray.data.synthetic import SyntheticConfig, generate
from dice_ray.data.synthetic.pairs import MESSAGES, REPLIES
from dice_ray.data.synthetic.phrases import DOUBTFUL_POSITIVE


def cues(first: str, second: str) -> tuple[str, str]:
    message = next(name for name, phrases in MESSAGES.items() if any(phrase in first for phrase in phrases))
    reply = next(name for name, phrases in REPLIES.items() if any(phrase in second for phrase in phrases))
    return message, reply


@given(size=st.integers(20, 300), share=st.floats(0.001, 0.999), noise=st.floats(0, 1), seed=st.integers(0, 5))
def test_the_dials_hold_in_every_split(size: int, share: float, noise: float, seed: int) -> None:
    splits = generate(SyntheticConfig(size=size, positive_share=share, noise=noise, seed=seed))
    assert {split: len(records) for split, records in splits.items()} == {
        "train": size,
        "dev": size // 2,
        "test": size // 2,
    }
    for records in splits.values():
        positives = [record for record in records if record.label == "1"]
        assert 1 <= len(positives) < len(records)
        assert abs(len(positives) - share * len(records)) <= 1
        found = [cues(record.first, record.second) for record in positives]
        assert set(found) <= {("clear", "open"), ("doubtful", "open")}
        assert found.count(("doubtful", "open")) == round(noise * len(positives))
        assert ("clear", "open") not in [cues(record.first, record.second) for record in records if record.label == "0"]


def test_the_planted_scores_of_a_perfect_model_at_the_default_dials() -> None:
    records = generate(SyntheticConfig(size=20000))["train"]
    found = [(cues(record.first, record.second), record.label == "1") for record in records]

    def f1(predicted: set[tuple[str, str]]) -> float:
        hits = sum(label for cue, label in found if cue in predicted)
        return 2 * hits / (sum(cue in predicted for cue, _ in found) + sum(label for _, label in found))

    doubtful = [label for cue, label in found if cue == ("doubtful", "open")]
    assert sum(doubtful) / len(doubtful) == pytest.approx(DOUBTFUL_POSITIVE, abs=0.001)
    assert f1({("clear", "open")}) == pytest.approx(0.67, abs=0.005)
    assert f1({("clear", "open"), ("doubtful", "open")}) == pytest.approx(0.73, abs=0.005)


def test_the_same_seed_gives_the_same_corpus_and_another_seed_another() -> None:
    found = [digest(generate(SyntheticConfig(seed=seed)).values()) for seed in (0, 0, 1)]
    assert found[0] == found[1] != found[2]
    train, dev, test = generate(SyntheticConfig()).values()
    assert len({digest([train[:1000]]), digest([dev]), digest([test])}) == 3
