"""Entities by kind, from a file or found in texts by spaCy or by rules, and where they stand in a text."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from importlib.metadata import version
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from dice_ray.errors import DataError

if TYPE_CHECKING:
    from spacy.language import Language

AUTO = "auto"
RULES = "rules"
PIPELINE = "en_core_web_sm"
"""What `auto` takes where it is installed."""
RULES_VERSION = 1
"""Raised when the rules find other entities in the same texts."""

WORD = re.compile(r"\d+(?:[.,]\d+)*(?![^\W_])|[^\W_]+(?:[.-][^\W_]+)*")
ENDS_SENTENCE = re.compile(r"[.!?:;\"“”()]")
OF_PLACE = frozenset({"in", "from", "near", "at", "outside", "across"})
CALENDAR = {
    word: kind
    for kind, words in {
        "weekday": "Monday Tuesday Wednesday Thursday Friday Saturday Sunday",
        "month": "January February March April May June July August September October November December",
    }.items()
    for word in words.split()
}
MOST_CAPITALISED = 0.5
"""Of the words of a text: where more are, it is a headline, and its capitals say nothing."""

Entities: TypeAlias = Mapping[str, Sequence[str]]
"""Entities by kind, each of which may stand for another of its kind."""


class Mention(NamedTuple):
    """An entity in a text, from its first character to the one after its last."""

    start: int
    end: int
    entity: str


class Gazetteer:
    """Entities by kind.

    Attributes:
        entities: The entities of each kind, in the order in which they were given.
        places: The kind of each entity, and its place there.
    """

    def __init__(self, entities: Entities) -> None:
        self.entities: dict[str, list[str]] = defaultdict(list)
        self.places: dict[str, tuple[str, int]] = {}
        self._by_first_word: dict[str, list[str]] = defaultdict(list)
        for entity, kind in {entity: kind for kind, each in entities.items() for entity in each}.items():
            self.places[entity] = kind, len(self.entities[kind])
            self.entities[kind].append(entity)
            self._by_first_word[_first_word(entity)].append(entity)
        for each in self._by_first_word.values():
            each.sort(key=len, reverse=True)

    def mentions(self, text: str) -> list[Mention]:
        """Where entities stand in a text, from left to right; the longest one where several begin.

        >>> [mention.entity for mention in Gazetteer({"city": ["York", "New York"]}).mentions("New York is new")]
        ['New York']
        """
        found: list[Mention] = []
        for word in WORD.finditer(text):
            if found and word.start() < found[-1].end:
                continue
            for entity in self._by_first_word.get(word.group(), ()):
                end = word.start() + len(entity)
                if text.startswith(entity, word.start()) and not _goes_on(text, end):
                    found.append(Mention(word.start(), end, entity))
                    break
        return found


def read(path: Path) -> Entities:
    """The entities of a file: one a line, or its kind, a tab and the entity."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise DataError(f"{path} must be text in UTF-8") from None
    entities: dict[str, list[str]] = defaultdict(list)
    for number, line in enumerate(lines, start=1):
        kind, tab, entity = line.partition("\t")
        kind, entity = (kind.strip(), entity.strip()) if tab else ("entity", line.strip())
        if not line.strip():
            continue
        if not kind or not entity or "\t" in entity:
            raise DataError(f"{path}, line {number}: must be an entity, or a kind, a tab and an entity, got {line!r}")
        entities[kind].append(entity)
    return entities


def found_in(texts: Callable[[], Iterable[str]], finder: str) -> Entities:
    """The entities of texts, by kind.

    Args:
        texts: The texts from the first one on, each time that it is called.
        finder: `rules`, or the name or folder of a spaCy pipeline.
    """
    return _by_rules(texts) if finder == RULES else _by_spacy(texts(), pipeline(finder))


def resolved(finder: str) -> str:
    """What `auto` is on this machine; anything else as it is."""
    if finder != AUTO:
        return finder
    return PIPELINE if find_spec("spacy") and find_spec(PIPELINE) else RULES


def finder_version(finder: str) -> str:
    """What of a finder decides which entities it finds."""
    if finder == RULES:
        return f"{RULES} {RULES_VERSION}"
    meta = pipeline(finder).meta
    return f"{meta['lang']}_{meta['name']} {meta['version']}, spaCy {version('spacy')}"


@lru_cache(maxsize=1)
def pipeline(name: str) -> Language:
    """A spaCy pipeline by its name or folder."""
    if not find_spec("spacy"):
        raise DataError(
            f"data.augment.entities.found.finder must be {AUTO} or {RULES} where spaCy is not installed, got {name!r}: "
            "`pip install 'dice-ray[augment]'` installs it"
        )
    import spacy

    try:
        return spacy.load(name)
    except OSError:
        known = ", ".join([AUTO, RULES, *spacy.util.get_installed_models()])
        raise DataError(
            "data.augment.entities.found.finder must be a spaCy pipeline that is installed, or a folder of one, got "
            f"{name!r}. Known: {known}"
        ) from None


def _by_spacy(texts: Iterable[str], language: Language) -> Entities:
    """The entities that a pipeline names, each of its most frequent label."""
    labels: dict[str, Counter[str]] = defaultdict(Counter)
    for document in language.pipe(texts):
        for entity in document.ents:
            if WORD.match(entity.text):
                labels[entity.text][entity.label_] += 1
    return _by_kind({entity: counts.most_common(1)[0][0] for entity, counts in labels.items()})


def _by_rules(texts: Callable[[], Iterable[str]]) -> Entities:
    """Numbers, by their shape; weekdays and months; names that stand twice, by their form and whether they are places.

    A name is a run of capitalised words within a sentence, one of which no text has in small letters. It is a place if
    half of the time it stands behind a preposition of place. Abbreviations with a full stop are left alone.
    """
    small = {word for text in texts() for word in WORD.findall(text) if word.islower()}
    numbers: dict[str, str] = {}
    times, places = Counter[str](), Counter[str]()
    for text in texts():
        words = list(WORD.finditer(text))
        for number in (word.group() for word in words if word.group()[0].isdigit()):
            if not any(map(str.isalpha, number)):
                numbers.setdefault(number, re.sub(r"\d", "0", number))
        if sum(word.group()[0].isupper() for word in words) > MOST_CAPITALISED * len(words):
            continue
        for first, last in _runs(text, words):
            end = words[last].end()
            is_abbreviated = text[end : end + 1] == "." and bool(text[end + 1 :].strip())
            if not is_abbreviated and any(word.group().lower() not in small for word in words[first : last + 1]):
                name = text[words[first].start() : end]
                times[name] += 1
                places[name] += words[first - 1].group() in OF_PLACE
    names = {name: _kind(name, 2 * places[name] >= count) for name, count in times.items() if count > 1}
    return _by_kind(numbers | names)


def _kind(name: str, is_place: bool) -> str:
    if name.isupper() and " " not in name:
        return "place in capitals" if is_place else "name in capitals"
    return CALENDAR.get(name) or f"{'place' if is_place else 'name'} of {name.count(' ') + 1}"


def _runs(text: str, words: Sequence[re.Match[str]]) -> Iterator[tuple[int, int]]:
    """The first and last words of runs of capitalised words that do not begin a sentence."""
    first: int | None = None
    for number, word in enumerate(words):
        before = text[words[number - 1].end() : word.start()] if number else "."
        is_capitalised = word.group()[0].isupper() and len(word.group()) > 1 and not ENDS_SENTENCE.search(before)
        if first is not None and (not is_capitalised or before != " "):
            yield first, number - 1
            first = None
        if is_capitalised and first is None:
            first = number
    if first is not None:
        yield first, len(words) - 1


def _by_kind(kinds: Mapping[str, str]) -> Entities:
    entities: dict[str, list[str]] = defaultdict(list)
    for entity, kind in kinds.items():
        entities[kind].append(entity)
    return entities


def _goes_on(text: str, end: int) -> bool:
    """Whether a word goes on behind this place."""
    return text[end - 1].isalnum() and text[end : end + 1].isalnum()


def _first_word(entity: str) -> str:
    words = [word.group() for word in islice(WORD.finditer(entity), 1)]
    if not words or not entity.startswith(words[0]):
        raise DataError(f"data.augment.entities: an entity must begin with a letter or a digit, got {entity!r}")
    return words[0]
