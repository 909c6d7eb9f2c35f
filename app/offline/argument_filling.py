"""Argument filling: a tool's arguments from the entities of a question, by the role of each parameter."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from typing import Any

from pydantic_core import SchemaError, SchemaValidator

from app.gazetteer.languages import Language, language_of
from app.offline import lexicon
from app.offline.days import LONGEST_FORECAST, wanted_days
from app.offline.entities import NamedPlace, extract_entities
from app.offline.question import Entity, Question, concepts_in, folded_words, rows
from app.offline.tool_profiles import Parameter

__all__ = ["ArgumentFiller"]

_MOST_ITEMS = 20
_SMALL_WORDS = frozenset(lexicon.SMALL_WORDS.split())


@dataclass(slots=True)
class ArgumentFiller:
    """Fills the parameters of one call from a question; each entity fills one parameter only.

    Args:
        question: The part of the question that the call answers.
        pairs: Arguments that the question names explicitly, as written, by the folded name.
        missing: Required parameters that the question has no value for.
    """

    question: Question
    pairs: Mapping[str, str] = field(default_factory=dict)
    missing: list[Parameter] = field(default_factory=list)
    taken: set[object] = field(default_factory=set)

    def fill(self, parameters: list[Parameter]) -> dict[str, Any]:
        """Find the values that the question has for the parameters; required ones without a value go to ``missing``."""
        found: dict[str, Any] = {}
        for parameter in sorted(parameters, key=lambda each: not each.required):
            value = self.value_of(parameter)
            if value is None and parameter.required:
                value = parameter.schema.get("default")
                self.missing += [parameter] if value is None else []
            if value is not None:
                found[parameter.name] = value
        return found

    def value_of(self, parameter: Parameter) -> Any:
        """Find the value of one parameter, by its name or by its role; ``None`` if there is none.

        A role that needs more than the first entity has a method of its own, ``_fill_<role>``.
        """
        given = self.pairs.get(parameter.name.lower())
        value = parameter.typed(given) if given else None
        return getattr(self, f"_fill_{parameter.role}", self._fill)(parameter) if value is None else value

    def _fill(self, parameter: Parameter) -> Any:
        is_free_text = parameter.role == "other" and not parameter.required
        return None if is_free_text else self._take(parameter, extract_entities(self.question, parameter.role))

    def _take(self, parameter: Parameter, found: Iterable[Entity]) -> Any:
        """The first finding that is left; what stands behind a word such as "from" is for one side only."""
        text, sides = self.question.flat, {"source": lexicon.FROM, "target": lexicon.TO}
        if own := sides.pop(parameter.side, None):
            (other,) = sides.values()
            near = [(each, text[max(each.start - 8, 0) : each.start]) for each in found]
            found = [each for each, before in near if own.search(before)]
            found += [each for each, before in near if not own.search(before) and not other.search(before)]
        first = next((each for each in found if (each.role, each.value) not in self.taken), None)
        if first is not None:
            self.taken.add((first.role, first.value))
        return first.value if first else None

    def _fill_id(self, parameter: Parameter) -> Any:
        """A word with a digit comes first; only whole numbers fit where it is no text."""
        found = [
            each
            for each in extract_entities(self.question, "id")
            if parameter.type == "string" or each.value.isdecimal()
        ]
        found.sort(key=lambda each: not any(map(str.isdigit, each.value)))
        value = self._take(parameter, found) if parameter.required else None
        return value if value is None or parameter.type == "string" else int(value)

    def _fill_place(self, parameter: Parameter) -> str | None:
        is_zone = parameter.role == "time_zone"
        places = extract_entities(self.question, "place")
        found = [each for each in places if (each.value.zone if is_zone else each.value.is_place)]
        place: NamedPlace | None = self._take(parameter, found)
        if place is None or is_zone:
            return place.zone if place else None
        return place.english if place.english and lexicon.WANTS_ENGLISH.search(parameter.about) else place.name

    _fill_time_zone = _fill_place

    def _fill_language(self, parameter: Parameter) -> str | None:
        """A language by its code or its name; without a word, Chinese goes into English and all else into Chinese."""
        if parameter.side == "source":
            return "auto" if parameter.required else None
        named = [each.value for each in extract_entities(self.question, "language")]
        language = next((each for each in named if isinstance(each, Language)), None)
        text = next((each.value for each in extract_entities(self.question, "text")), None)
        if named or not parameter.required:
            pass
        elif lexicon.MEANING.search(self.question.command):
            language = language_of("zh" if self.question.chinese else "en")
        elif text is not None:
            language = language_of("en" if lexicon.HAN.search(text) and not lexicon.KANA.search(text) else "zh")
        if language is None:
            return None
        return language.english if lexicon.WANTS_LANGUAGE_NAMES.search(parameter.about) else language.code

    def _choices(self, parameter: Parameter) -> list[Any]:
        """The values of an enumeration that are mentioned, in the question's order."""
        found: list[tuple[int, int, int]] = []
        for n, choice in enumerate(parameter.choices):
            words, language = folded_words(str(choice)[:100]), language_of(str(choice))
            if words in _SMALL_WORDS and not parameter.required:
                continue
            said = [each for each in _synonyms().get(words, ()) if each[1:] or not each.isascii()]
            for each in (words, *said, *(language.names if language else ())):
                mention = _mention(each).search(self.question.command)
                found += [(mention.start(), -len(words), n)] if mention else []
        return [parameter.choices[n] for n in dict.fromkeys(n for _, _, n in sorted(found))]

    def _fill_choice(self, parameter: Parameter) -> Any:
        is_given = "const" in parameter.schema or (parameter.required and len(parameter.choices) == 1)
        return next(iter(self._choices(parameter)), parameter.choices[0] if is_given else None)

    def _fill_boolean(self, parameter: Parameter) -> bool | None:
        """Whether it is wanted; ``None`` where it is not mentioned, but a required switch is off then."""
        text = self.question.command
        if lexicon.IS_A_SWITCH.search(parameter.words) and (lexicon.OFF.search(text) or lexicon.ON.search(text)):
            return lexicon.OFF.search(text) is None
        about = {concept for concept, _ in concepts_in(parameter.words)}
        words = [word for word in parameter.words.split() if len(word) > 3 and word not in ("include", "with", "show")]
        starts = (re.search(rf"(?<![a-z]){re.escape(word.removesuffix('s'))}", text) for word in words)
        mentioned = [each.start() for each in starts if each]
        mentioned += [at for concept, at in concepts_in(text) if concept in about]
        if mentioned:
            return lexicon.NEGATION.search(text, max(min(mentioned) - 12, 0), min(mentioned)) is None
        return False if parameter.required and "default" not in parameter.schema else None

    def _fill_array(self, parameter: Parameter) -> list[Any] | None:
        items: list[Any] = []
        (item,) = parameter.inner or [parameter]
        if item.role == "choice":
            return self._choices(item)[:_MOST_ITEMS] or None
        while len(items) < _MOST_ITEMS:
            inner = replace(self, missing=[])
            value = inner.value_of(item)
            if value is None or value in items or inner.missing:
                break
            items.append(value)
        return items or None

    def _fill_object(self, parameter: Parameter) -> dict[str, Any] | None:
        """What it holds; of an object that need not be there only what the question speaks of counts."""
        inner = replace(self, missing=[])
        value = inner.fill([replace(each, required=each.required and parameter.required) for each in parameter.inner])
        self.missing += inner.missing
        is_whole = all(each.name in value for each in parameter.inner if each.required)
        return value if parameter.required or (value and is_whole) else None

    def _fill_days(self, parameter: Parameter) -> float | None:
        """A number of days, within the schema's bounds; without a word about it the smallest, where one is required."""
        wanted = wanted_days(extract_entities(self.question, "day"))
        low, high = parameter.number("minimum"), parameter.number("maximum")
        if not wanted and (not parameter.required or "default" in parameter.schema):
            return None
        count: float = max((LONGEST_FORECAST if each.first else each.count for each in wanted), default=1)
        if wanted and wanted[0].offset is not None and lexicon.WANTS_DAYS_AHEAD.search(parameter.about):
            count = wanted[0].offset
        elif high is not None and any(each.first for each in wanted):
            count = high
        at_least = count if low is None else max(count, low)
        return at_least if high is None else min(at_least, high)

    def _fill_number(self, parameter: Parameter) -> float | None:
        """The number with the parameter's word or unit beside it; else, where one is required, the first free one."""
        text, named = self.question.flat, parameter.words.split()
        words = [word for word in named if len(word) > 1] + re.findall(r"[㐀-鿿]{2,4}", parameter.about)
        for names, units in rows(lexicon.UNITS):
            words += units if not set(names).isdisjoint(named) else []
        free = [each for each in extract_entities(self.question, "number") if ("number", each.start) not in self.taken]
        beside = [each for each in free if _is_beside(each, text, words)]
        if not beside and parameter.required:
            beside = [each for each in free if not lexicon.NO_QUANTITY.search(text[each.start : each.end])]
        if not beside:
            return None
        self.taken.add(("number", beside[0].start))
        return parameter.as_number(beside[0].value)

    def _fill_pattern(self, parameter: Parameter) -> Any:
        """Words that the schema's pattern allows, as written, then in capitals; one that allows any word tells none."""
        question, allows = self.question, _check_of(str(parameter.schema["pattern"])[:500])
        found = [
            *extract_entities(question, "other"),
            *extract_entities(question, "date"),
            *extract_entities(question, "time_of_day"),
        ]
        if not any(map(allows, _SMALL_WORDS)):
            tokens = extract_entities(question, "token")
            found = [*tokens, *(replace(each, value=each.value.upper()) for each in tokens), *found]
        elif not parameter.required:
            return None
        return self._take(parameter, [each for each in found if allows(each.value)])


@lru_cache(maxsize=1024)
def _mention(word: str) -> re.Pattern[str]:
    """Finds a word in a folded text, Latin ones as whole words; no word is found nowhere."""
    edge = r"[a-z0-9]" if word.isascii() else r"(?!)"
    return re.compile(rf"(?<!{edge}){re.escape(word)}(?!{edge})" if word else r"(?!)")


def _is_beside(found: Entity, text: str, words: list[str]) -> bool:
    after = text[found.end : found.end + 16].lstrip(" -")
    before = text[max(found.start - 16, 0) : found.start].rstrip(" :=#")
    return any(
        after.startswith(word) or after.lstrip("个").startswith(word) or (len(word) > 1 and before.endswith(word))
        for word in words
    )


@cache
def _synonyms() -> dict[str, list[str]]:
    return {word: [*latin, *chinese] for latin, chinese in rows(lexicon.SYNONYMS) for word in latin}


@lru_cache(maxsize=256)
def _check_of(pattern: str) -> Callable[[str], bool]:
    """Pydantic's own engine takes linear time whatever the pattern; what it cannot read is not filled."""
    try:
        return SchemaValidator({"type": "str", "pattern": pattern}).isinstance_python
    except SchemaError:
        return lambda _: False
