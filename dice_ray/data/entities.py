"""Entities by kind, read from a file or found in texts by spaCy or by rules, and their mentions in a text."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from dice_ray.errors import DataError

if TYPE_CHECKING:
    from spacy.language import Language

AUTO = "auto"
RULES = "rules"
PIPELINE = "en_core_web_sm"
"""What `auto` uses if it is installed."""
RULES_VERSION = 1
"""Increment when the rules find different entities in the same texts: the cache of augmented data depends on it."""

WORD = re.compile(r"\d+(?:[.,]\d+)*(?![^\W_])|[^\W_]+(?:[.-][^\W_]+)*")
ENDS_SENTENCE = re.compile(r"[.!?:;\"“”()]")
PLACE_PREPOSITIONS = frozenset({"in", "from", "near", "at", "outside", "across"})
CALENDAR = {
    word: kind
    for kind, words in {
        "weekday": "Monday Tuesday Wednesday Thursday Friday Saturday Sunday",
        "month": "January February March April May June July August September October November December",
    }.items()
    for word in words.split()
}
MAX_CAPITALISED = 0.5
"""The share of capitalised words above which a text is a headline, in which capitals do not mark names."""

Entities: TypeAlias = Mapping[str, Sequence[str]]
"""Entities by kind; each can replace another of its kind."""


class Mention(NamedTuple):
    """An occurrence of an entity in a text, from its first character to the one after its last."""

    start: int
    end: int
    entity: str


class Gazetteer:
    """A list of known entities that finds their mentions in texts.

    Attributes:
        entities: The entities of each kind, in the order given; an entity given for two kinds has the last of them.
        indices: The kind of each entity, and its index in the list of that kind.
    """

    def __init__(self, entities: Entities) -> None:
        self.entities: dict[str, list[str]] = defaultdict(list)
        self.indices: dict[str, tuple[str, int]] = {}
        self._by_first_word: dict[str, list[str]] = defaultdict(list)
        for entity, kind in {entity: kind for kind, of_kind in entities.items() for entity in of_kind}.items():
            if (first_word := WORD.match(entity)) is None:
                raise DataError(f"data.augment.entities: an entity must begin with a letter or a digit, got {entity!r}")
            self.indices[entity] = kind, len(self.entities[kind])
            self.entities[kind].append(entity)
            self._by_first_word[first_word.group()].append(entity)
        for candidates in self._by_first_word.values():
            # `mentions` takes the first that matches, which must be the longest.
            candidates.sort(key=len, reverse=True)

    def mentions(self, text: str) -> list[Mention]:
        """The mentions of entities in a text from left to right, the longest of those that begin at one word.

        >>> [mention.entity for mention in Gazetteer({"city": ["York", "New York"]}).mentions("New York is new")]
        ['New York']
        """
        mentions: list[Mention] = []
        for word in WORD.finditer(text):
            if mentions and word.start() < mentions[-1].end:
                continue
            for entity in self._by_first_word.get(word.group(), ()):
                end = word.start() + len(entity)
                # The last word must be whole too: "New York" is no mention in "New Yorkers".
                if text.startswith(entity, word.start()) and not (
                    text[end - 1].isalnum() and text[end : end + 1].isalnum()
                ):
                    mentions.append(Mention(word.start(), end, entity))
                    break
        return mentions


def read_entities(path: Path) -> Entities:
    """Read a file with one entity a line, or its kind, a tab and the entity."""
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


def find_entities(texts: Callable[[], Iterable[str]], finder: str) -> Entities:
    """Find the entities of texts, by kind.

    Args:
        texts: Returns an iterator over the texts; each call starts at the first one.
        finder: `rules`, or the name or folder of a spaCy pipeline.
    """
    return _by_rules(texts) if finder == RULES else _by_spacy(texts(), pipeline(finder))


def resolve_finder(finder: str) -> str:
    """Replace `auto` by the finder that this machine has."""
    if finder != AUTO:
        return finder
    return PIPELINE if find_spec("spacy") and find_spec(PIPELINE) else RULES


def finder_version(finder: str) -> str:
    """The name and version of a finder, which decide what it finds."""
    if finder == RULES:
        return f"{RULES} {RULES_VERSION}"
    meta = pipeline(finder).meta
    return f"{meta['lang']}_{meta['name']} {meta['version']}, spaCy {version('spacy')}"


@lru_cache(maxsize=1)
def pipeline(name: str) -> Language:
    """Load a spaCy pipeline by its name or folder."""
    if not find_spec("spacy"):
        raise DataError(
            f"data.augment.entities.found.finder must be {AUTO} or {RULES} where spaCy is not installed, got {name!r}: "
            "`pip install spacy` installs it"
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
    """The entities that a pipeline labels, each with its most frequent label."""
    labels: dict[str, Counter[str]] = defaultdict(Counter)
    for document in language.pipe(texts):
        for entity in document.ents:
            if WORD.match(entity.text):
                labels[entity.text][entity.label_] += 1
    return _by_kind({entity: counts.most_common(1)[0][0] for entity, counts in labels.items()})


def _by_rules(texts: Callable[[], Iterable[str]]) -> Entities:
    """Find numbers by their shape, weekdays, months, and names that occur twice, by their form and as places or not.

    A name is a run of capitalised words that does not begin a sentence, at least one of which never occurs in lower
    case. It is a place if at least half of its occurrences follow a preposition of place. An abbreviation, which ends
    in a full stop within the text, is no name. Texts are read twice, the first time for the lower-case words.
    """
    lower_case = {word for text in texts() for word in WORD.findall(text) if word.islower()}
    numbers: dict[str, str] = {}
    num_mentions, num_as_place = Counter[str](), Counter[str]()
    for text in texts():
        words = list(WORD.finditer(text))
        for number in (word.group() for word in words if word.group()[0].isdigit()):
            if not any(map(str.isalpha, number)):
                numbers.setdefault(number, re.sub(r"\d", "0", number))
        if sum(word.group()[0].isupper() for word in words) > MAX_CAPITALISED * len(words):
            continue
        for first, last in _runs(text, words):
            end = words[last].end()
            is_abbreviated = text[end : end + 1] == "." and bool(text[end + 1 :].strip())
            if not is_abbreviated and any(word.group().lower() not in lower_case for word in words[first : last + 1]):
                name = text[words[first].start() : end]
                num_mentions[name] += 1
                num_as_place[name] += words[first - 1].group() in PLACE_PREPOSITIONS
    names = {name: _kind(name, 2 * num_as_place[name] >= count) for name, count in num_mentions.items() if count > 1}
    return _by_kind(numbers | names)


def _kind(name: str, is_place: bool) -> str:
    if name.isupper() and " " not in name:
        return "place in capitals" if is_place else "name in capitals"
    return CALENDAR.get(name) or f"{'place' if is_place else 'name'} of {name.count(' ') + 1}"


def _runs(text: str, words: Sequence[re.Match[str]]) -> Iterator[tuple[int, int]]:
    """The indices of the first and last word of each run of capitalised words that does not begin a sentence."""
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
