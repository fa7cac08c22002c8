"""Chinese answer scores against the published steps of CMRC 2018's evaluation, by brute force and by hand."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dice_ray.metrics.answers_zh import cmrc_score, segments
from dice_ray.metrics.classification import Counts

DROPPED = "-:_*^/\\~`+=\uff0c。\uff1a\uff1f\uff01“”\uff1b\u2019《》·、「」\uff08\uff09\uff0d\uff5e『』"
"""The marks of the published evaluation, one character each."""
TEXTS = st.text(st.sampled_from("天地人A a1《》\uff0c、 "), max_size=8)


def published(prediction: str, answer: str) -> tuple[float, float]:
    """Exact match without marks; F1 of the longest common run of characters and of words of other scripts."""

    def bare(text: str) -> str:
        return "".join(character for character in text.lower().strip() if character not in DROPPED)

    def parts(text: str) -> list[str]:
        found = list[str]()
        for is_chinese, group in itertools.groupby(bare(text), key=lambda character: "\u4e00" <= character <= "\u9fa5"):
            run = "".join(group)
            found += run if is_chinese else run.split()
        return found

    left, right = parts(prediction), parts(answer)
    runs = {tuple(left[i:j]) for i in range(len(left)) for j in range(i + 1, len(left) + 1)}
    runs &= {tuple(right[i:j]) for i in range(len(right)) for j in range(i + 1, len(right) + 1)}
    longest = max(map(len, runs), default=0)
    if longest == 0:
        return float(bare(prediction) == bare(answer)), 0.0
    precision, recall = longest / len(left), longest / len(right)
    return float(bare(prediction) == bare(answer)), 2 * precision * recall / (precision + recall)


@given(TEXTS, st.lists(TEXTS, min_size=1, max_size=3))
def test_scores_are_the_best_of_the_published_steps(prediction: str, gold: list[str]) -> None:
    expected = [max(values) for values in zip(*(published(prediction, answer) for answer in gold), strict=True)]
    found = cmrc_score("1", prediction, gold)
    assert [found.exact, found.f1] == pytest.approx(expected)
    assert found.f1 == pytest.approx(found.counts.f1)


def test_scores_by_hand() -> None:
    assert cmrc_score("1", "《大唐》\uff01", ["大唐"]).exact == 1
    half = cmrc_score("1", "他在北京", ["在北京大学"])
    assert (half.exact, half.counts) == (0, Counts(3, 1, 2))
    assert half.f1 == pytest.approx(2 * 3 / 9)
    # A bag of characters would give 1: the runs that are common have one character.
    assert cmrc_score("1", "京北", ["北京"]).f1 == 0.5


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("166°c 50\uff05", "166°c 50\uff05"),
        ('(5)c. "dorothy"', "( 5 ) c. `` dorothy ''"),
        (" r.s., 1985, c.a13", "r.s. , 1985 , c.a13"),
        ('"casino royale"1954', "`` casino royale '' 1954"),
        ("1,000.5 ...", "1,000.5 ..."),
        ("sp.", "sp ."),
        ("john's, don't", "john 's , do n't"),
        ("66\u201316—18", "66 \u2013 16 — 18"),
        ('"e. dispar"', "`` e. dispar ''"),
        ('113°28\u2032 56.16"', "113°28\u2032 56.16 ''"),
    ],
)
def test_other_scripts_are_parted_as_nltk_does(text: str, words: str) -> None:
    """The words of nltk 3.9's NLTKWordTokenizer, which the published evaluation calls."""
    assert segments(text) == words.split()


def test_kana_are_characters() -> None:
    """A sequence of kana was one word, so that an answer with one of them too many scored 0."""
    assert segments("\u30c6\u30ec\u30d3\u5c40 NHK") == ["\u30c6", "\u30ec", "\u30d3", "\u5c40", "nhk"]
