"""Answer scores against reimplemented evaluation scripts, by brute force, and by hand."""

from __future__ import annotations

import collections
import itertools
import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dice_ray.metrics.answers import (
    AnswerScore,
    answer_scores,
    cmrc_score,
    normalised,
    segments,
    spans_score,
    squad_score,
)
from dice_ray.metrics.classification import Counts

TEXTS = st.text(st.sampled_from("ab A.-1 \t\u00e9"), max_size=8) | st.sampled_from(
    ["the a", "An apple", "1,000", "-", ""]
)


def squad_script(prediction: str, answer: str) -> tuple[int, float]:
    """SQuAD 2.0's own steps for one gold answer."""

    def normalize(text: str) -> str:
        text = "".join(character for character in text.lower() if character not in set(string.punctuation))
        return " ".join(re.sub(r"\b(a|an|the)\b", " ", text).split())

    gold_tokens, found_tokens = normalize(answer).split(), normalize(prediction).split()
    same = sum((collections.Counter(gold_tokens) & collections.Counter(found_tokens)).values())
    exact = int(normalize(answer) == normalize(prediction))
    if len(gold_tokens) == 0 or len(found_tokens) == 0:
        return exact, int(gold_tokens == found_tokens)
    if same == 0:
        return exact, 0
    precision, recall = same / len(found_tokens), same / len(gold_tokens)
    return exact, 2 * precision * recall / (precision + recall)


@given(TEXTS, st.lists(TEXTS, max_size=3))
def test_squad_scores_are_the_best_of_the_script(prediction: str, gold: list[str]) -> None:
    answers = [answer for answer in gold if squad_script(answer, "")[0] == 0] or [""]
    expected = [max(values) for values in zip(*(squad_script(prediction, answer) for answer in answers), strict=True)]
    found = squad_score("1", prediction, gold)
    assert [found.exact, found.f1] == pytest.approx(expected)
    assert found.answerable == bool(gold)


@pytest.mark.parametrize(
    ("prediction", "answer", "counts"),
    [
        ("\u6771\u4eac\u90fd", "\u6771\u4eac", Counts(2, 1, 0)),  # Japanese: Tokyo
        ("\u30c6\u30ec\u30d3", "\u30c6\u30ec", Counts(2, 1, 0)),  # kana
        ("\u0e01\u0e23\u0e38\u0e07\u0e40\u0e17\u0e1e", "\u0e01\u0e23\u0e38\u0e07", Counts(4, 3, 0)),  # Thai: Bangkok
        ("\u1797\u17d2\u1793\u17c6", "\u1797\u17d2", Counts(2, 2, 0)),  # Khmer
        ("\u0ea7\u0ebd\u0e87", "\u0ea7", Counts(1, 2, 0)),  # Lao
        ("the tower of \u6771\u4eac", "\u6771\u4eac", Counts(2, 2, 0)),
        ("\uc11c\uc6b8\uc5d0\uc11c", "\uc11c\uc6b8", Counts(0, 1, 1)),  # Korean has spaces
    ],
)
def test_each_character_of_a_script_without_spaces_is_a_word(prediction: str, answer: str, counts: Counts) -> None:
    """F1 was exact match there: an answer with one character too many scored 0."""
    for version in ("v1", "v2"):
        found = squad_score("1", prediction, [answer], version)
        assert (found.counts, found.f1) == (counts, counts.f1)


def test_an_english_question_keeps_its_official_score() -> None:
    """By characters, two questions of SQuAD 2.0 dev could get other scores than in the official evaluation."""
    assert squad_score("1", "\u5143\u671d\u4ee3", ["Yuan Chao", "\u5143\u671d"]).f1 == 0


def test_version_1_gives_an_empty_answer_nothing() -> None:
    assert squad_score("1", "the", ["a"], "v1") == AnswerScore("1", 1.0, 0.0, answerable=True)
    assert squad_score("1", "the", ["a"], "v2") == AnswerScore("1", 1.0, 1.0, answerable=True)
    assert squad_score("1", "x y", ["y z", "q"], "v1").f1 == 0.5


def test_normalisation_by_hand() -> None:
    assert normalised(" An  Élan-vital, the 'U.S.' a\u00a0b") == "élanvital us b"


def test_means_over_questions_with_and_without_an_answer() -> None:
    scores = [AnswerScore("1", 1, 1, True), AnswerScore("2", 0, 0.5, True), AnswerScore("3", 0, 0, False)]
    assert answer_scores(scores) == pytest.approx(
        {
            "exact": 1 / 3,
            "f1": 0.5,
            "has_answer_exact": 0.5,
            "has_answer_f1": 0.75,
            "no_answer_exact": 0,
            "no_answer_f1": 0,
        }
    )
    assert answer_scores(scores[:2]) == {"exact": 0.5, "f1": 0.75}


WORDS = st.lists(st.sampled_from(["red", "car", "1", "1.0", "2", "the", "up-to"]), min_size=1, max_size=3).map(" ".join)


@given(st.lists(WORDS, min_size=1, max_size=3), st.lists(WORDS, min_size=1, max_size=3))
def test_several_spans_are_matched_as_well_as_any_matching(prediction: list[str], gold: list[str]) -> None:
    def bag(span: str) -> frozenset[str]:
        words = [word for part in span.split() for word in part.split("-") if word != "the"]
        return frozenset(str(float(word)) if word[0].isdigit() else word for word in words)

    def f1(found: frozenset[str], wanted: frozenset[str]) -> float:
        numbers = {word for word in wanted if word[0].isdigit()}
        if not found and not wanted:
            return 1
        return 0 if numbers and not numbers & found else 2 * len(found & wanted) / (len(found) + len(wanted))

    size = max(len(prediction), len(gold))
    left = [bag(span) for span in prediction] + [None] * (size - len(prediction))
    right = [bag(span) for span in gold] + [None] * (size - len(gold))
    best = max(
        sum(
            f1(found, wanted)
            for found, wanted in zip(order, right, strict=True)
            if found is not None and wanted is not None
        )
        for order in itertools.permutations(left)
    )
    assert spans_score("1", prediction, gold).f1 == pytest.approx(best / size, abs=0.00501)


def test_several_spans_by_hand() -> None:
    both = spans_score("1", ["Ann", "the Bob"], ["bob", "ann"])
    assert both == AnswerScore("1", 1.0, 1.0, answerable=True, counts=Counts(2, 0, 0))
    one = spans_score("1", ["Ann Lee"], ["ann", "Bob"])
    assert one == AnswerScore("1", 0.0, 0.33, answerable=True, counts=Counts(1, 1, 1))
    twice = spans_score("1", ["ann", "ann"], ["ann"])
    assert twice == AnswerScore("1", 0.0, 0.5, answerable=True, counts=Counts(1, 1, 0))
    assert spans_score("1", ["10 men"], ["12 men"]).f1 == 0
    assert spans_score("1", ["1,000"], ["1000"]).exact == 1
    assert spans_score("1", [], ["ann"]) == AnswerScore("1", 0.0, 0.0, answerable=True, counts=Counts(0, 0, 1))


def test_words_are_counted_against_the_answer_of_the_best_f1() -> None:
    assert squad_score("1", "x y y", ["q r s", "the y y z"]).counts == Counts(2, 1, 1)
    assert squad_score("1", "", ["x y"]).counts == Counts(0, 0, 2)
    assert squad_score("1", "x y", []).counts == Counts(0, 2, 0)
    assert squad_score("1", "", []).counts == Counts()


DROPPED = "-:_*^/\\~`+=\uff0c。\uff1a\uff1f\uff01“”\uff1b\u2019《》·、「」\uff08\uff09\uff0d\uff5e『』"
"""The marks of the published evaluation, one character each."""
CHINESE = st.text(st.sampled_from("天地人A a1《》\uff0c、 "), max_size=8)


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


@given(CHINESE, st.lists(CHINESE, min_size=1, max_size=3))
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
