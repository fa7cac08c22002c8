"""Augmentation: copies of training records in which entities are swapped for others of their kind.

Entities are given by kind, or found in the training split by spaCy or by rules.
"""

from __future__ import annotations

import math
import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeAlias

from dice_ray.data.records import PairRecord, TextRecord
from dice_ray.errors import DataError
from dice_ray.settings import Branch, Choice, Settings

if TYPE_CHECKING:
    from spacy.language import Language

Augmented: TypeAlias = PairRecord | TextRecord
"""The records that can be augmented: those of one or two texts."""
_RULES = "rules"
_WORD = re.compile(r"\d+(?:[.,]\d+)*(?![^\W_])|[^\W_]+(?:[.-][^\W_]+)*")
_ENDS_SENTENCE = re.compile(r"[.!?:;\"“”()]")
_PLACE_PREPOSITIONS = frozenset({"in", "from", "near", "at", "outside", "across"})
_CALENDAR = {
    word: kind
    for kind, words in {
        "weekday": "Monday Tuesday Wednesday Thursday Friday Saturday Sunday",
        "month": "January February March April May June July August September October November December",
    }.items()
    for word in words.split()
}
_MAX_CAPITALISED = 0.5
"""The share of capitalised words above which a text is a headline, in which capitals do not mark names."""

_Entities: TypeAlias = Mapping[str, Sequence[str]]
"""Entities by kind; each can replace another of its kind."""


class _Mention(NamedTuple):
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

    def __init__(self, entities: _Entities) -> None:
        self.entities: dict[str, list[str]] = defaultdict(list)
        self.indices: dict[str, tuple[str, int]] = {}
        self._by_first_word: dict[str, list[str]] = defaultdict(list)
        for entity, kind in {entity: kind for kind, of_kind in entities.items() for entity in of_kind}.items():
            if (first_word := _WORD.match(entity)) is None:
                raise DataError(f"data.augment.entities: an entity must begin with a letter or a digit, got {entity!r}")
            self.indices[entity] = kind, len(self.entities[kind])
            self.entities[kind].append(entity)
            self._by_first_word[first_word.group()].append(entity)
        for candidates in self._by_first_word.values():
            # `mentions` takes the first that matches, which must be the longest.
            candidates.sort(key=len, reverse=True)

    def mentions(self, text: str) -> list[_Mention]:
        """The mentions of entities in a text from left to right, the longest of those that begin at one word.

        >>> [mention.entity for mention in Gazetteer({"city": ["York", "New York"]}).mentions("New York is new")]
        ['New York']
        """
        mentions: list[_Mention] = []
        for word in _WORD.finditer(text):
            if mentions and word.start() < mentions[-1].end:
                continue
            for entity in self._by_first_word.get(word.group(), ()):
                end = word.start() + len(entity)
                # The last word must be whole too: "New York" is no mention in "New Yorkers".
                if text.startswith(entity, word.start()) and not (
                    text[end - 1].isalnum() and text[end : end + 1].isalnum()
                ):
                    mentions.append(_Mention(word.start(), end, entity))
                    break
        return mentions


class _FoundEntitiesConfig(Branch):
    """Entities found in the training split.

    Attributes:
        finder: What finds them: `rules` (numbers, and capitalised words within sentences), the name or folder of a
            spaCy pipeline, or `auto`: `en_core_web_sm` if it is installed, else `rules`.
    """

    name = "found"

    finder: str = "auto"

    def key(self) -> str:
        """Everything the entities depend on, except the training split: the name and version of the finder."""
        if (finder := self._finder()) == _RULES:
            return f"{_RULES} 1"  # another number when they find other entities in the same texts
        meta = _pipeline(finder).meta
        return f"{meta['lang']}_{meta['name']} {meta['version']}, spaCy {version('spacy')}"

    def origin(self) -> str:
        """The source of the entities as a phrase for reports and errors."""
        return f"entities found by {self.key()}"

    def gazetteer(self, records: Sequence[Augmented]) -> Gazetteer:
        def texts() -> Iterator[str]:
            return (text for record in records for text in record.content)

        finder = self._finder()
        return Gazetteer(_by_rules(texts) if finder == _RULES else _by_spacy(texts(), _pipeline(finder)))

    def _finder(self) -> str:
        if self.finder != "auto":
            return self.finder
        pipeline = "en_core_web_sm"
        return pipeline if find_spec("spacy") and find_spec(pipeline) else _RULES


class _GivenEntitiesConfig(Branch):
    """Entities written in the configuration.

    Attributes:
        by_kind: The entities of each kind; each can replace another of its kind.
    """

    name = "given"

    by_kind: dict[str, list[str]]

    def key(self) -> list[tuple[str, list[str]]]:
        return [*self.by_kind.items()]  # in their order: an entity of two kinds is of the last one

    def origin(self) -> str:
        return "given entities"

    def gazetteer(self, records: Sequence[Augmented]) -> Gazetteer:
        return Gazetteer(self.by_kind)


class AugmentConfig(Settings):
    """How records are added to a training set: entities of a record are swapped for others of their kind.

    Attributes:
        entities: The source of entities.
        swap: Which entities are swapped: in a pair only those that occur in both sentences (`shared`), or `any`.
    """

    entities: Annotated[_FoundEntitiesConfig | _GivenEntitiesConfig, Choice()] = _FoundEntitiesConfig()
    swap: Literal["shared", "any"] = "shared"

    def key(self) -> list[Any]:
        """Everything the copies depend on, except the training split."""
        return [self.entities.name, self.entities.key(), self.swap]


def copies(
    record: Augmented, gazetteer: Gazetteer, swap: Literal["shared", "any"], state: random.Random
) -> Iterator[Augmented]:
    """Every copy of a record with its entities swapped, in random order; the ids of record 7's are 7+1, 7+2, ...

    An entity is replaced by the same other one wherever it occurs in the record, and never by one that occurs there.
    """
    mentions = [gazetteer.mentions(text) for text in record.content]
    entities_by_text = [{mention.entity for mention in of_text} for of_text in mentions]
    present = set.union(*entities_by_text)
    swappable = set.intersection(*entities_by_text) if swap == "shared" else present
    present_of_kind: dict[str, list[int]] = defaultdict(list)
    for entity in present:
        kind, index = gazetteer.indices[entity]
        present_of_kind[kind].append(index)
    candidates = dict[str, _EntitiesWithout]()
    num_of_kind = Counter[str]()
    # Sorted: a set of strings has another order in each process, and the copies must be the same in all.
    for entity in sorted(swappable):
        kind, _ = gazetteer.indices[entity]
        others = _EntitiesWithout(gazetteer.entities[kind], sorted(present_of_kind[kind]))
        if len(others) > num_of_kind[kind]:  # else too few are left for all entities of the kind to differ
            candidates[entity] = others
            num_of_kind[kind] += 1
    combinations = _combinations(list(candidates.values()), state) if candidates else ()
    # The replacements in a combination are independent, so two entities of a kind may get the same one: no copy.
    distinct = (combination for combination in combinations if len({*combination}) == len(combination))
    for number, replacements in enumerate(distinct, start=1):
        by_entity = dict(zip(candidates, replacements, strict=True))
        texts = [_swap(text, of_text, by_entity) for text, of_text in zip(record.content, mentions, strict=True)]
        copy_id = f"{record.id}+{number}"
        if isinstance(record, PairRecord):
            yield replace(record, id=copy_id, first=texts[0], second=texts[1])
        else:
            yield replace(record, id=copy_id, text=texts[0])


@dataclass(frozen=True)
class _EntitiesWithout:
    """The entities of a kind except those at some indices, which are sorted; a view, as a kind may have very many."""

    entities: Sequence[str]
    without: Sequence[int]

    def __len__(self) -> int:
        return len(self.entities) - len(self.without)

    def __getitem__(self, index: int) -> str:
        # In ascending order: an index is shifted by each skipped one at or before it.
        for skipped in self.without:
            index += skipped <= index
        return self.entities[index]


def _combinations(choices: Sequence[_EntitiesWithout], state: random.Random) -> Iterator[list[str]]:
    """One entity of each choice, every combination once in pseudo-random order, without a list of all of them.

    Combinations are numbered 0 to n - 1. Steps of a constant stride modulo n visit every number once if the stride has
    no common divisor with n.
    """
    total = math.prod(map(len, choices))
    stride = state.randrange(1, total + 1)
    while math.gcd(stride, total) > 1:
        stride = state.randrange(1, total + 1)
    start = state.randrange(total)
    for step in range(total):
        number = (start + step * stride) % total
        combination = []
        for choice in choices:
            number, index = divmod(number, len(choice))
            combination.append(choice[index])
        yield combination


def _swap(text: str, mentions: Sequence[_Mention], by_entity: dict[str, str]) -> str:
    pieces, end = [], 0
    for mention in mentions:
        pieces += [text[end : mention.start], by_entity.get(mention.entity, mention.entity)]
        end = mention.end
    return "".join([*pieces, text[end:]])


@lru_cache(maxsize=1)
def _pipeline(name: str) -> Language:
    """Load a spaCy pipeline by its name or folder."""
    if not find_spec("spacy"):
        raise DataError(
            f"data.augment.entities.found.finder must be auto or {_RULES} where spaCy is not installed, got {name!r}: "
            "`pip install spacy` installs it"
        )
    import spacy

    try:
        return spacy.load(name)
    except OSError:
        known = ", ".join(["auto", _RULES, *spacy.util.get_installed_models()])
        raise DataError(
            "data.augment.entities.found.finder must be a spaCy pipeline that is installed, or a folder of one, got "
            f"{name!r}. Known: {known}"
        ) from None


def _by_spacy(texts: Iterable[str], language: Language) -> _Entities:
    """The entities that a pipeline labels, each with its most frequent label."""
    labels: dict[str, Counter[str]] = defaultdict(Counter)
    for document in language.pipe(texts):
        for entity in document.ents:
            if _WORD.match(entity.text):
                labels[entity.text][entity.label_] += 1
    return _by_kind({entity: counts.most_common(1)[0][0] for entity, counts in labels.items()})


def _by_rules(texts: Callable[[], Iterable[str]]) -> _Entities:
    """Find numbers by their shape, weekdays, months, and names that occur twice, by their form and as places or not.

    A name is a run of capitalised words that does not begin a sentence, at least one of which never occurs in lower
    case. It is a place if at least half of its occurrences follow a preposition of place. An abbreviation, which ends
    in a full stop within the text, is no name. Texts are read twice, the first time for the lower-case words.
    """
    lower_case = {word for text in texts() for word in _WORD.findall(text) if word.islower()}
    numbers: dict[str, str] = {}
    num_mentions, num_as_place = Counter[str](), Counter[str]()
    for text in texts():
        words = list(_WORD.finditer(text))
        for number in (word.group() for word in words if word.group()[0].isdigit()):
            if not any(map(str.isalpha, number)):
                numbers.setdefault(number, re.sub(r"\d", "0", number))
        if sum(word.group()[0].isupper() for word in words) > _MAX_CAPITALISED * len(words):
            continue
        for first, last in _runs(text, words):
            end = words[last].end()
            is_abbreviated = text[end : end + 1] == "." and bool(text[end + 1 :].strip())
            if not is_abbreviated and any(word.group().lower() not in lower_case for word in words[first : last + 1]):
                name = text[words[first].start() : end]
                num_mentions[name] += 1
                num_as_place[name] += words[first - 1].group() in _PLACE_PREPOSITIONS
    names = {name: _kind(name, 2 * num_as_place[name] >= count) for name, count in num_mentions.items() if count > 1}
    return _by_kind(numbers | names)


def _kind(name: str, is_place: bool) -> str:
    if name.isupper() and " " not in name:
        return "place in capitals" if is_place else "name in capitals"
    return _CALENDAR.get(name) or f"{'place' if is_place else 'name'} of {name.count(' ') + 1}"


def _runs(text: str, words: Sequence[re.Match[str]]) -> Iterator[tuple[int, int]]:
    """The indices of the first and last word of each run of capitalised words that does not begin a sentence."""
    first: int | None = None
    for number, word in enumerate(words):
        before = text[words[number - 1].end() : word.start()] if number else "."
        is_capitalised = word.group()[0].isupper() and len(word.group()) > 1 and not _ENDS_SENTENCE.search(before)
        if first is not None and (not is_capitalised or before != " "):
            yield first, number - 1
            first = None
        if is_capitalised and first is None:
            first = number
    if first is not None:
        yield first, len(words) - 1


def _by_kind(kinds: Mapping[str, str]) -> _Entities:
    entities: dict[str, list[str]] = defaultdict(list)
    for entity, kind in kinds.items():
        entities[kind].append(entity)
    return entities
