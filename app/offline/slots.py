"""A tool's arguments out of a question: every parameter takes what was found for its role."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from typing import Any

from pydantic_core import SchemaError, SchemaValidator

from app.languages import Language, language_of
from app.offline import lexicon
from app.offline.figures import dates, days_in, numbers, spans_from_now, times_of_day, wanted_days
from app.offline.languages import named_languages, source_language, targets, text_to_handle
from app.offline.places import places
from app.offline.question import Found, Question, concepts_in, folded_words, rows
from app.offline.tools import Parameter

__all__ = ["Slots", "found_in"]

_MOST_ITEMS, _LONGEST_FORECAST = 20, 14
_HAN, _KANA = re.compile(r"[㐀-鿿]"), re.compile(r"[぀-ヿ]")
_TOKEN = re.compile(r"[^\s\0,;，；。、?？!！\"“”()（）㐀-鿿]{1,60}")
# How a description asks for days ahead, languages by name, names of places in English, durations.
_WANTS_DAYS_AHEAD = re.compile(r"\b(?:ahead|later|offset|from now|after)\b|[之以][后後]|后第")
_WANTS_LANGUAGE_NAMES = re.compile(
    r"\b(?:such as|eg|e g|like) (?:english|chinese|japanese|french)|language names?\b|语言名称"
)
_WANTS_ENGLISH = re.compile(r"\bin english\b|english name|英文名|拼音")
_WANTS_DURATIONS = re.compile(r"\bduration\b|时长")
# A switch that is on or off itself; numbers that are hardly meant as one: 一 in 一下, 零 alone.
_IS_A_SWITCH = re.compile(r"\b(?:on|enabled?|state|power)\b|开关")
_NO_QUANTITY = re.compile(r"[一两]$|^[零〇万千百]+$")
_TRUE, _FALSE = ("true", "yes", "on", "是"), ("false", "no", "off", "否")


def found_in(question: Question, role: str) -> list[Found]:
    """What a question holds for a role; it is looked for once."""
    if role not in question.found:
        question.found[role] = list(_FINDERS[role](question))
    return question.found[role]


def _matches(pattern: re.Pattern[str], question: Question, role: str) -> Iterator[Found]:
    """What the first group of a pattern finds in the folded text, as written."""
    for match in pattern.finditer(question.flat):
        yield Found(role, question.raw[slice(*match.span(1))].strip(), *match.span(1))


def _ids(question: Question) -> Iterator[Found]:
    """Words with a digit; then what is called an id, and words in capitals."""
    yield from _matches(lexicon.ID, question, "id")
    yield from _matches(lexicon.LABELLED, question, "id")
    yield from (Found("id", each[1], *each.span()) for each in lexicon.CAPITALS.finditer(question.raw))


def _moments(question: Question) -> Iterator[Found]:
    """Every time of day with its date; then spans from now."""
    days = [each for each in found_in(question, "date") if each.value[0] != "-"]
    for number, time in enumerate(found_in(question, "time_of_day") if days else ()):
        day = days[min(number, len(days) - 1)]
        yield Found("date_time", f"{day.value}T{time.value}:00", time.start, time.end)
    yield from found_in(question, "duration")


def _texts(text: str | None) -> list[Found]:
    return [Found("text", text, 0, 0)] if text else []


def _subjects(question: Question) -> list[Found]:
    """What is quoted, else all of the question but its opening."""
    opening = lexicon.SEARCH_OPENING.match(question.flat)
    rest = question.raw[opening.end() if opening else 0 :].strip(" ?.!。，,？！\n")
    return _texts(question.payload or rest)


# What finds each role; every place and number stands in the command, the other things also in what is quoted.
_FINDERS: Mapping[str, Callable[[Question], Iterable[Found]]] = {
    "place": places,
    "day": lambda question: days_in(question.command),
    "number": lambda question: list(numbers(question.command)) or numbers(question.flat),
    "language": lambda question: named_languages(question.command),
    "duration": lambda question: spans_from_now(question.flat),
    "date": lambda question: dates(question.flat),
    "time_of_day": lambda question: times_of_day(question.flat),
    "date_time": _moments,
    "email": lambda question: _matches(lexicon.EMAIL, question, "email"),
    "url": lambda question: _matches(lexicon.URL, question, "url"),
    "id": _ids,
    "name": lambda question: [*_matches(lexicon.NAMED, question, "name"), *_texts(question.payload)],
    "text": lambda question: _texts(text_to_handle(question)),
    "subject": _subjects,
    "other": lambda question: _texts(question.payload),
}


@dataclass(slots=True)
class Slots:
    """What a question has to give to the parameters of one call: what one got, another does not get."""

    question: Question
    """The part of the question that the tool is to answer."""
    whole: Question
    only: Mapping[str, list[Found]] = field(default_factory=dict)
    """What this call is for, by role, where a question gives several things and each gets a call."""
    language: Language | None = None
    """The target language that this call is for."""
    pairs: Mapping[str, str] = field(default_factory=dict)
    """Arguments that the question gives by name, as written, by the folded name."""
    missing: list[Parameter] = field(default_factory=list)
    """Required parameters for which the question holds nothing."""
    taken: set[object] = field(default_factory=set)

    def filled(self, parameters: list[Parameter]) -> dict[str, Any]:
        """Find a value for every parameter that the question speaks of; what is required and has none is missing."""
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
        """Find the value of one parameter: given by name, or found for its role; ``None`` where there is none.

        A role that takes more than the first finding has a method of its own, which is called after it.
        """
        given = self.pairs.get(parameter.name.lower())
        value = _typed(given, parameter) if given else None
        if value is not None:
            return value
        fill = getattr(self, f"_fill_{parameter.role}", self._found)
        return fill(parameter)

    def _found(self, parameter: Parameter) -> Any:
        """The first finding of the parameter's role that is left; those behind the word that it asks for come first."""
        role = parameter.role
        if role in ("id", "subject", "other") and not parameter.required:
            return None
        found = self.only.get(role) or found_in(self.question, role)
        if role == "id":
            found = _nearest_ids(parameter, self.question, found)
        elif role == "date":
            found = [each for each in found if each.value[0] != "-"]
        elif role == "date_time" and not _WANTS_DURATIONS.search(parameter.about):
            found = [each for each in found if each.role != "duration"]
        return self._take(parameter, found)

    def _take(self, parameter: Parameter, found: Iterable[Found]) -> Any:
        cue = (
            lexicon.FROM
            if parameter.is_source
            else lexicon.TO
            if parameter.is_side(lexicon.TARGET, lexicon.SOURCE)
            else None
        )
        text = self.question.flat
        if cue:
            found = sorted(found, key=lambda each: not cue.search(text, max(each.start - 8, 0), each.start))
        free = (each for each in found if (each.role, each.value) not in self.taken)
        first = next(free, None)
        if first is None:
            return None
        self.taken.add((first.role, first.value))
        return int(first.value) if parameter.type == "integer" and isinstance(first.value, str) else first.value

    def _fill_place(self, parameter: Parameter) -> str | None:
        wants_zone = parameter.role == "time_zone"
        found = self.only.get("place") or found_in(self.question, "place")
        place = self._take(
            parameter, [each for each in found if (each.value.zone if wants_zone else each.value.is_place)]
        )
        if place is None or wants_zone:
            return place.zone if place else None
        return place.english if place.english and _WANTS_ENGLISH.search(parameter.about) else place.name

    _fill_time_zone = _fill_place

    def _spoken(self, parameter: Parameter) -> Language | None:
        """The language that a parameter is about; without a word, Chinese goes into English and all else into Chinese."""
        if parameter.is_source:
            return source_language(self.question.command)
        named = self.language or next(iter(targets(self.question.command).known), None)
        text = text_to_handle(self.question)
        if named is not None or text is None:
            return named
        return language_of("en" if _HAN.search(text) and not _KANA.search(text) else "zh")

    def _fill_language(self, parameter: Parameter) -> str | None:
        language = self._spoken(parameter)
        if language is None:
            return "auto" if parameter.is_source and parameter.required else None
        return language.english if _WANTS_LANGUAGE_NAMES.search(parameter.about) else language.code

    def _choices(self, parameter: Parameter) -> list[Any]:
        """The values of an enumeration that are mentioned, in the question's order; a language where they are such."""
        texts = [each for each in parameter.choices if isinstance(each, str)]
        if language := self._spoken(parameter) if any(map(language_of, texts)) else None:
            names = (language.code.lower(), language.english.lower(), language.chinese)
            if spoken := [each for each in texts if each.lower() in names]:
                return spoken[:1]
        found = [(_place_of(each, self.question), -len(str(each)[:50]), n) for n, each in enumerate(parameter.choices)]
        return [parameter.choices[n] for at, _, n in sorted(found) if at >= 0]

    def _fill_choice(self, parameter: Parameter) -> Any:
        is_given = "const" in parameter.schema or (parameter.required and len(parameter.choices) == 1)
        return next(iter(self._choices(parameter)), parameter.choices[0] if is_given else None)

    def _fill_boolean(self, parameter: Parameter) -> bool | None:
        """Whether it is wanted; a required switch that nobody mentions is off."""
        wanted = _is_wanted(parameter, self.question.command)
        return False if wanted is None and parameter.required and "default" not in parameter.schema else wanted

    def _fill_array(self, parameter: Parameter) -> list[Any] | None:
        item, items = parameter.items, []
        if item.role == "choice":
            return self._choices(item)[:_MOST_ITEMS] or None
        while len(items) < _MOST_ITEMS:
            value = replace(self, missing=[]).value_of(item)
            if value is None or value in items:
                break
            items.append(value)
        return items or None

    def _fill_object(self, parameter: Parameter) -> dict[str, Any] | None:
        inner = replace(self, missing=[])
        value = inner.filled(parameter.properties)
        self.missing += inner.missing if parameter.required else []
        return value if parameter.required or (value and not inner.missing) else None

    def _fill_days(self, parameter: Parameter) -> float | None:
        """A number of days, within the schema's bounds; without a word about it the smallest, where one is required."""
        wanted = wanted_days(found_in(self.question, "day")) or wanted_days(found_in(self.whole, "day"))
        low, high = parameter.number("minimum"), parameter.number("maximum")
        if wanted is None and (not parameter.required or "default" in parameter.schema):
            return None
        count: float = wanted.count if wanted else 1
        if wanted and wanted.date:
            count = _LONGEST_FORECAST if high is None else high
        elif wanted and wanted.offset is not None and _WANTS_DAYS_AHEAD.search(parameter.about):
            count = wanted.offset
        at_least = count if low is None else max(count, low)
        return at_least if high is None else min(at_least, high)

    def _fill_number(self, parameter: Parameter) -> float | None:
        """The number with the parameter's word or unit beside it; else, where one is required, the first free one."""
        found = self.only.get("number") or found_in(self.question, "number")
        free = [each for each in found if ("number", each.start) not in self.taken and abs(each.value) < 1e15]
        words, text = set(_unit_words(parameter)), self.question.flat
        one = next((each for each in free if _is_beside(each, text, words)), None)
        if one is None and parameter.required:
            one = next((each for each in free if not _NO_QUANTITY.search(text[each.start : each.end])), None)
        if one is None:
            return None
        self.taken.add(("number", one.start))
        return _number_as(parameter, one.value)

    def _fill_pattern(self, parameter: Parameter) -> Any:
        """Words that the schema's pattern allows, as written, then in capitals."""
        question, validator = self.question, _validator(str(parameter.schema["pattern"])[:500])
        tokens = [Found("pattern", each[0], *each.span()) for each in _TOKEN.finditer(question.raw)]
        found = [*tokens, *found_in(question, "id")]
        found += [replace(each, value=each.value.upper()) for each in tokens]
        found += [Found("pattern", question.raw[start:end], start, end) for start, end in question.payloads]
        found += [*found_in(question, "date"), *found_in(question, "time_of_day")]
        return self._take(parameter, [each for each in found if validator and validator.isinstance_python(each.value)])


def _nearest_ids(parameter: Parameter, question: Question, found: list[Found]) -> list[Found]:
    """Those first that stand near to what the parameter is about; whole numbers only where it is no text."""
    if parameter.type != "string":
        found = [each for each in found if each.value.isdecimal()]
    with_digit = [each for each in found if any(map(str.isdigit, each.value))]
    about = {concept for concept, _ in concepts_in(parameter.about)}
    near = [position for concept, position in concepts_in(question.command) if concept in about]
    with_digit.sort(key=lambda each: min((abs(each.start - position) for position in near), default=0))
    return [*with_digit, *found]


def _typed(text: str, parameter: Parameter) -> Any:
    """A value that was given by name, in the parameter's type; ``None`` where it cannot be that."""
    if parameter.choices:
        return next((each for each in parameter.choices if str(each).lower() == text.lower()), None)
    if parameter.type == "array":
        items = [_typed(each.strip(), parameter.items) for each in re.split(r"[,，、;；]", text)[:20] if each.strip()]
        return [each for each in items if each is not None] or None
    if parameter.type == "boolean":
        return text.lower() in _TRUE if text.lower() in (*_TRUE, *_FALSE) else None
    if parameter.type in ("integer", "number"):
        return next((_number_as(parameter, each.value) for each in numbers(text)), None)
    return text if parameter.type == "string" else None


def _is_wanted(parameter: Parameter, text: str) -> bool | None:
    """Whether something is asked for, or to be left out; ``None`` where a folded text does not mention it."""
    if _IS_A_SWITCH.search(parameter.words):
        return False if lexicon.OFF.search(text) else True if lexicon.ON.search(text) else None
    about = {concept for concept, _ in concepts_in(parameter.words)}
    words = [word for word in parameter.words.split() if len(word) > 3 and word not in ("include", "with", "show")]
    mentioned = [at for word in words if (at := text.find(word.removesuffix("s"))) >= 0]
    mentioned += [at for concept, at in concepts_in(text) if concept in about]
    first = min(mentioned, default=-1)
    return lexicon.NEGATION.search(text, max(first - 12, 0), first) is None if mentioned else None


def _number_as(parameter: Parameter, value: float) -> float | None:
    whole = int(value) == value
    return None if parameter.type == "integer" and not whole else int(value) if whole else value


def _place_of(choice: Any, question: Question) -> int:
    """Where a value of an enumeration is mentioned; -1 where it is not."""
    if isinstance(choice, int | float) and not isinstance(choice, bool):
        return next((each.start for each in found_in(question, "number") if each.value == choice), -1)
    if not isinstance(choice, str):
        return -1
    words, text = folded_words(choice[:100]), question.command
    found = [_position(each, text) for each in (words, *_synonyms().get(words, ())) if each]
    return min((at for at in found if at >= 0), default=-1)


def _position(word: str, text: str) -> int:
    if not word.isascii():
        return text.find(word)
    match = re.search(rf"(?<![a-z0-9]){re.escape(word)}(?![a-z0-9])", text)
    return match.start() if match else -1


@cache
def _synonyms() -> dict[str, list[str]]:
    return {
        word: [*chinese, *(each for each in english if len(each) > 1)]
        for english, chinese in rows(lexicon.SYNONYMS)
        for word in english
    }


def _is_beside(found: Found, text: str, words: set[str]) -> bool:
    after = text[found.end : found.end + 16].lstrip(" -")
    before = text[max(found.start - 16, 0) : found.start].rstrip(" :=#")
    return any(after.startswith(word) or (len(word) > 1 and before.endswith(word)) for word in words)


def _unit_words(parameter: Parameter) -> Iterator[str]:
    named = parameter.words.split()
    yield from (word for word in named if len(word) > 1)
    yield from re.findall(r"[㐀-鿿]{2,4}", parameter.about)
    yield from (unit for names, units in rows(lexicon.UNITS) if not set(names).isdisjoint(named) for unit in units)


@lru_cache(maxsize=256)
def _validator(pattern: str) -> SchemaValidator | None:
    """Pydantic's own engine takes linear time whatever the pattern; what it cannot read is not filled."""
    try:
        return SchemaValidator({"type": "str", "pattern": pattern})
    except SchemaError:
        return None
