"""Generated corpora: the settings hold, the planted scores stand, seeds repeat."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from dice_ray.data.records import PairRecord, QueryRecord, QuestionRecord, TaggedRecord, TextRecord
from dice_ray.data.synthetic import KINDS, SyntheticConfig, generate
from dice_ray.data.synthetic.labels import _CLEAR, _DOUBTFUL, _LABELS
from dice_ray.data.synthetic.pairs import _MESSAGES, _REPLIES
from dice_ray.data.synthetic.phrases import DOUBTFUL_POSITIVE
from dice_ray.data.synthetic.tagging import NAMES
from dice_ray.data.synthetic.texts import _MESSAGES as TOPICS
from dice_ray.data.synthetic.texts import _RARE
from dice_ray.metrics.answers import answer_scores, squad_score
from dice_ray.metrics.spans import Span, span_counts, span_scores, spans_of, sum_counts
from dice_ray.tasks.span_candidates import without_overlaps


def cues(first: str, second: str) -> tuple[str, str]:
    message = next(name for name, phrases in _MESSAGES.items() if any(phrase in first for phrase in phrases))
    reply = next(name for name, phrases in _REPLIES.items() if any(phrase in second for phrase in phrases))
    return message, reply


def test_the_planted_scores_of_a_perfect_model_at_the_default_settings() -> None:
    records = generate(SyntheticConfig(size=4000))["train"]
    found = [(cues(record.first, record.second), bool(record.label == "1")) for record in records]

    def f1(predicted: set[tuple[str, str]]) -> float:
        hits = sum(label for cue, label in found if cue in predicted)
        return 2 * hits / (sum(cue in predicted for cue, _ in found) + sum(label for _, label in found))

    assert {cue for cue, label in found if label} == {("clear", "open"), ("doubtful", "open")}
    doubtful = [label for cue, label in found if cue == ("doubtful", "open")]
    assert sum(doubtful) / len(doubtful) == pytest.approx(DOUBTFUL_POSITIVE, abs=0.001)
    assert f1({("clear", "open")}) == pytest.approx(0.67, abs=0.005)
    assert f1({("clear", "open"), ("doubtful", "open")}) == pytest.approx(0.73, abs=0.005)


@given(size=st.integers(20, 300), share=st.floats(0.001, 0.1), noise=st.floats(0, 1), seed=st.integers(0, 5))
def test_the_settings_hold_in_sentences_with_names(size: int, share: float, noise: float, seed: int) -> None:
    splits = generate(SyntheticConfig(kind="tagging", size=size, positive_share=share, noise=noise, seed=seed))
    for records in splits.values():
        num_words = sum(len(record.words) for record in records)
        assert num_words == 18 * len(records)
        spans = [span for record in records for span in spans_of(record.tags)]
        assert len(spans) == max(1, round(share * num_words / 1.5))
        assert abs(sum(end - first for _, first, end in spans) - share * num_words) <= 2
        doubtful = {*NAMES["doubtful"][0], *NAMES["doubtful"][1]}
        found = [record.words[first] in doubtful for record in records for _, first, _ in spans_of(record.tags)]
        assert sum(found) == round(noise * len(spans))


@pytest.mark.parametrize(("kind", "most"), [("tagging", 0.1), ("queries", 0.1), ("labels", 0.2)])
def test_more_positives_than_there_is_room_for_are_refused(kind: str, most: float) -> None:
    with pytest.raises(ValidationError, match=rf"positive_share must be at most {most} for {kind}, got 0\.3"):
        SyntheticConfig.model_validate({"kind": kind, "positive_share": 0.3})


def test_a_perfect_tagger_has_the_planted_scores() -> None:
    records = generate(SyntheticConfig(kind="tagging", size=2000))["train"]
    firsts = {word: name for name, (choices, _) in NAMES.items() for word in choices}

    def f1(named: set[str]) -> float:
        found = [span_counts(spans_of(record.tags), _predicted(record, firsts, named)) for record in records]
        return span_scores(sum_counts(found))["f1"]

    assert f1({"PER", "LOC"}) == pytest.approx(0.667, abs=0.005)
    assert f1({"PER", "LOC", "doubtful"}) == pytest.approx(0.727, abs=0.005)


@given(size=st.integers(20, 300), share=st.floats(0.001, 0.1), noise=st.floats(0, 1), seed=st.integers(0, 5))
def test_the_settings_hold_in_sentences_that_are_asked_about(size: int, share: float, noise: float, seed: int) -> None:
    splits = generate(SyntheticConfig(kind="queries", size=size, positive_share=share, noise=noise, seed=seed))
    for split, records in splits.items():
        assert len(records) == (size if split == "train" else size // 2)
        sentences = _sentences(records)
        assert all(len(words) == 18 for words, _, _ in sentences)
        whole = sentences if len(records) % 3 == 0 else sentences[:-1]  # the last one may lack some of its queries
        covered = sum(len({word for _, first, end in spans for word in range(first, end)}) for _, spans, _ in whole)
        assert abs(covered - share * 18 * len(whole)) <= 2 + 18 * (len(sentences) - len(whole))
        people = [words[first] for words, spans, _ in whole for type_, first, _ in spans if type_ == "PER"]
        doubtful = [word in NAMES["doubtful"][0] for word in people]
        assert noise > 0 or not any(doubtful)
        assert noise < 1 or all(doubtful)


def test_a_perfect_model_of_queries_has_the_planted_scores() -> None:
    sentences = _sentences(generate(SyntheticConfig(kind="queries", size=9000))["train"])

    def f1(with_doubtful: bool, flat: bool) -> float:
        found = []
        for words, gold, doubtful in sentences:
            clear = {span for span in gold if words[span[1]] not in NAMES["doubtful"][0]}
            said = dict.fromkeys(clear | doubtful if with_doubtful else clear, 0.9)
            found.append(span_counts(gold, without_overlaps(said) if flat else said))
        return span_scores(sum_counts(found))["f1"]

    assert f1(with_doubtful=False, flat=False) == pytest.approx(0.727, abs=0.005)
    assert f1(with_doubtful=True, flat=False) == pytest.approx(0.757, abs=0.005)
    assert f1(with_doubtful=False, flat=True) == pytest.approx(0.600, abs=0.005)
    assert f1(with_doubtful=True, flat=True) == pytest.approx(0.686, abs=0.005)


def _sentences(records: tuple[QueryRecord, ...]) -> list[tuple[tuple[str, ...], set[Span], set[Span]]]:
    """The words of each sentence, its gold spans, and what is doubtful in it, as people."""
    gold: dict[str, set[Span]] = {}
    words = {record.group: record.words for record in records}
    for record in records:
        gold.setdefault(record.group, set()).update((record.type, first, end) for first, end in record.spans)
    return [
        (
            words[group],
            spans,
            {("PER", at, at + 2) for at, word in enumerate(words[group]) if word in NAMES["doubtful"][0]},
        )
        for group, spans in gold.items()
    ]


def _predicted(record: TaggedRecord, firsts: dict[str, str], named: set[str]) -> set[Span]:
    """The names of these kinds, those of people and the doubtful as people."""
    seconds = {word for _, choices in NAMES.values() for word in choices}
    found = set()
    for place, word in enumerate(record.words):
        if firsts.get(word) in named:
            end = place + 1 + (record.words[place + 1] in seconds)
            found.add(("LOC" if firsts[word] == "LOC" else "PER", place, end))
    return found


def evidence(record: QuestionRecord) -> tuple[str, str]:
    """What in the context could answer the question: the clear name of its kind, and the doubtful one."""
    kind = {"who": "PER", "where": "LOC"}[record.question.split()[0]]
    words = record.context.split()
    found = {}
    for name in (kind, "doubtful"):
        firsts, seconds = NAMES[name]
        places = [place for place, word in enumerate(words) if word in firsts]
        ends = [place + 1 + (words[place + 1] in seconds) for place in places]
        found[name] = "".join(" ".join(words[place:end]) for place, end in zip(places, ends, strict=True))
    return found[kind], found["doubtful"]


def test_a_perfect_reader_has_the_planted_scores() -> None:
    records = generate(SyntheticConfig(kind="questions", size=2000, positive_share=0.6, noise=0.25))["train"]

    def scores(takes_doubtful: bool) -> dict[str, float]:
        found = []
        for record in records:
            clear, doubtful = evidence(record)
            given = clear or (doubtful if takes_doubtful else "")
            found.append(squad_score(record.id, given, [answer[0].text for answer in record.answers]))
        return answer_scores(found)

    leaves, takes = scores(takes_doubtful=False), scores(takes_doubtful=True)
    names = ("f1", "has_answer_f1", "no_answer_f1")
    assert [leaves[name] for name in names] == pytest.approx([0.85, 0.75, 1], abs=0.001)
    assert [takes[name] for name in names] == pytest.approx([0.775, 1, 0.4375], abs=0.001)


def is_positive(record: PairRecord | TextRecord | QuestionRecord) -> bool:
    if isinstance(record, QuestionRecord):
        return not record.impossible
    return record.labels in (("1",), (_RARE,))


def is_doubtful(record: PairRecord | TextRecord | QuestionRecord) -> bool:
    if isinstance(record, QuestionRecord):
        return bool(evidence(record)[1])
    phrases = _MESSAGES["doubtful"] if isinstance(record, PairRecord) else TOPICS["doubtful"]
    return any(phrase in record.content[0] for phrase in phrases)


@pytest.mark.parametrize("kind", ["pairs", "texts", "questions"])
@given(size=st.integers(20, 300), share=st.floats(0.001, 0.999), noise=st.floats(0, 1), seed=st.integers(0, 5))
def test_the_settings_hold_in_every_split(kind: str, size: int, share: float, noise: float, seed: int) -> None:
    written = {"kind": kind, "size": size, "positive_share": share, "noise": noise, "seed": seed}
    splits = generate(SyntheticConfig.model_validate(written))
    assert [len(records) for records in splits.values()] == [size, size // 2, size // 2]
    for records in splits.values():
        positives = [record for record in records if is_positive(record)]
        assert 1 <= len(positives) < len(records)
        assert abs(len(positives) - share * len(records)) <= 1
        assert sum(map(is_doubtful, positives)) == round(noise * len(positives))


@given(size=st.integers(20, 300), share=st.floats(0.001, 0.999), noise=st.floats(0, 1), seed=st.integers(0, 5))
def test_the_text_holds_the_answer_of_a_question(size: int, share: float, noise: float, seed: int) -> None:
    config = SyntheticConfig(kind="questions", size=size, positive_share=share, noise=noise, seed=seed)
    for record in generate(config)["train"]:
        clear, doubtful = evidence(record)
        assert record.impossible != bool(record.answers)
        assert not (clear and (doubtful or record.impossible))
        for (span,) in record.answers:
            assert record.context[span.start :].startswith(span.text)
            assert span.text in (clear, doubtful)


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_seed_gives_the_same_corpus_and_another_seed_another(kind: str) -> None:
    base = SyntheticConfig.model_validate({"kind": kind})
    found = [[list(split) for split in generate(base.model_copy(update={"seed": seed})).values()] for seed in (0, 0, 1)]
    assert found[0] == found[1] != found[2]
    train, dev, test = found[0]
    assert train[: len(dev)] != dev != test != train[: len(test)]


def teams(text: str, phrases: dict[str, tuple[str, ...]]) -> set[str]:
    """Whose things of this kind a message says."""
    return {label for label in _LABELS if any(f" {phrase} " in text for phrase in phrases[label])}


@given(size=st.integers(20, 300), share=st.floats(0.001, 0.2), noise=st.floats(0, 1), seed=st.integers(0, 5))
def test_the_settings_hold_in_messages_with_several_labels(size: int, share: float, noise: float, seed: int) -> None:
    splits = generate(SyntheticConfig(kind="labels", size=size, positive_share=share, noise=noise, seed=seed))
    for records in splits.values():
        for label, weight in _LABELS.items():
            num_given = sum(label in record.labels for record in records)
            assert num_given == max(1, round(share * 3 * len(records) * weight / 7))
            doubtful = [record.labels for record in records if label in teams(record.text, _DOUBTFUL)]
            assert sum(label in labels for labels in doubtful) == round(noise * num_given)
            assert len(doubtful) == pytest.approx(round(noise * num_given) / DOUBTFUL_POSITIVE, abs=1)
        for record in records:
            clear = teams(record.text, _CLEAR)
            assert clear <= set(record.labels) <= clear | teams(record.text, _DOUBTFUL)


def test_a_perfect_model_of_several_labels_has_the_planted_scores() -> None:
    records = generate(SyntheticConfig(kind="labels", size=7000))["train"]
    assert {len(record.labels) for record in records} == {0, 1, 2, 3}

    def f1(label: str, *evidence: dict[str, tuple[str, ...]]) -> float:
        found = [any(label in teams(record.text, phrases) for phrases in evidence) for record in records]
        gold = [label in record.labels for record in records]
        return 2 * sum(map(lambda a, b: a and b, found, gold)) / (sum(found) + sum(gold))

    for label in _LABELS:
        assert f1(label, _CLEAR) == pytest.approx(0.67, abs=0.005)
        assert f1(label, _CLEAR, _DOUBTFUL) == pytest.approx(0.73, abs=0.005)
    shares = {label: sum(label in record.labels for record in records) / len(records) for label in _LABELS}
    assert sum(2 * share / (1 + share) for share in shares.values()) / 3 == pytest.approx(0.18, abs=0.005)
    total = sum(shares.values())
    assert 2 * shares["billing"] / (1 + total) == pytest.approx(0.26, abs=0.005)
