"""A tool's arguments out of a question: every parameter takes what was found for its role."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from pydantic_core import SchemaError, SchemaValidator

from app.languages import Language, language_of
from app.offline import lexicon
from app.offline.languages import source_language, targets, text_to_handle
from app.offline.numbers import Found, dates, horizon, numbers, spans_from_now, times_of_day
from app.offline.parameters import Parameter
from app.offline.places import NamedPlace
from app.offline.question import Question
from app.offline.words import concepts_in, folded_words, rows

__all__ = ["Slots"]

_MOST_ITEMS = 20
_HAN, _KANA = re.compile(r"[㐀-鿿]"), re.compile(r"[぀-ヿ]")
# How a description asks for languages by name, for names of places in English, for days ahead, for durations.
_WANTS_LANGUAGE_NAMES = re.compile(
    r"\b(?:such as|eg|e g|like) (?:english|chinese|japanese|french)|language names?\b|语言名称"
)
_WANTS_ENGLISH = re.compile(r"\bin english\b|english name|英文名|拼音")
_WANTS_DAYS_AHEAD = re.compile(r"\b(?:ahead|later|offset|from now|after)\b|之后|以后|以後|后第")
_WANTS_DURATIONS = re.compile(r"\bduration\b|时长")
# A switch that is on or off itself.
_IS_A_SWITCH = re.compile(r"\b(?:on|enabled?|state|power)\b|开关")
# Numbers that are hardly meant as one: 一 in 一下, 零 alone.
_NO_QUANTITY = re.compile(r"[一两]$|^[零〇万千百]+$")
# What is cut off a question to get what a search is for.
_SEARCH_OPENING = re.compile(
    r"(?:please|请|帮我|麻烦|给我|can you|could you|我想|我要|去|search for|search|look up|find|lookup|query|搜索|"
    r"查找|查询|检索|搜一下|查一下|查|找|about|for|关于|一下|the|\s)+"
)
_TOKEN = re.compile(r"[^\s,;，；。、?？!！\"“”()（）㐀-鿿]{1,60}")
_ASSIGNABLE = ("number", "days", "other", "id", "name")


@dataclass(slots=True)
class Slots:
    """What a question has to give to the parameters of one call: what one got, another does not get."""

    question: Question
    """The part of the question that the tool is to answer."""
    whole: Question
    places: list[Found]
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
                if value is None:
                    self.missing.append(parameter)
            if value is not None:
                found[parameter.name] = value
        return found

    def take(self, found: Iterable[Found]) -> Any:
        """Take the first value that is still there."""
        for each in found:
            if (each.role, each.value) not in self.taken:
                self.taken.add((each.role, each.value))
                return each.value
        return None

    def value_of(self, parameter: Parameter) -> Any:
        """Find the value of one parameter; ``None`` where there is none."""
        given = self.pairs.get(parameter.name.lower())
        if given is None:
            given = self._assigned(parameter)
        value = None if given is None else _typed(given, parameter)
        return _BY_ROLE[parameter.role](self, parameter) if value is None else value

    def _assigned(self, parameter: Parameter) -> str | None:
        """A value that any question may give as ``name=value``, for numbers and plain words."""
        if len(parameter.words) < 2 or parameter.role not in _ASSIGNABLE:
            return None
        name = re.escape(parameter.name.lower())
        pattern = re.compile(rf"(?<![a-z0-9]){name} ?(?:=|:|为|是|is\b) ?([\w.+-]{{1,100}})")
        return next((each.value for each in _matches(pattern, self.question, "")), None)


def _typed(text: str, parameter: Parameter) -> Any:
    """A value that was given by name, in the parameter's type; ``None`` where it cannot be that."""
    if parameter.choices:
        return next((each for each in parameter.choices if str(each).lower() == text.lower()), None)
    if parameter.type == "array":
        items = [_typed(each.strip(), parameter.items) for each in re.split(r"[,，、;；]", text) if each.strip()]
        return [each for each in items if each is not None][:_MOST_ITEMS] or None
    if parameter.type == "boolean":
        return {
            "true": True,
            "yes": True,
            "on": True,
            "是": True,
            "false": False,
            "no": False,
            "off": False,
            "否": False,
        }.get(text.lower())
    if parameter.type in ("integer", "number"):
        return next((_number_as(parameter, each.value) for each in numbers(text)), None)
    return text if parameter.type == "string" else None


def _number_as(parameter: Parameter, value: float) -> float | None:
    whole = int(value) == value
    return None if parameter.type == "integer" and not whole else int(value) if whole else value


def _choice(slots: Slots, parameter: Parameter) -> Any:
    if "const" in parameter.schema:
        return parameter.schema["const"]
    values = _choices(slots, parameter)
    only = parameter.choices[0] if parameter.required and len(parameter.choices) == 1 else None
    return values[0] if values else only


def _choices(slots: Slots, parameter: Parameter) -> list[Any]:
    """The values of an enumeration that the question mentions, in its order; a language where they are languages."""
    language = _spoken_language(slots, parameter)
    if language is not None:
        wanted = (language.code.lower(), language.english.lower(), language.chinese)
        if spoken := [each for each in parameter.choices if isinstance(each, str) and each.lower() in wanted]:
            return spoken[:1]
    text, places = slots.question.command, []
    for index, choice in enumerate(parameter.choices):
        at = _mentioned(choice, text)
        if at >= 0:
            places.append((at, -len(str(choice)[:50]), index))
    return [parameter.choices[index] for _, _, index in sorted(places)]


def _mentioned(choice: Any, text: str) -> int:
    """Where a value is mentioned; -1 where it is not."""
    if isinstance(choice, bool) or choice is None:
        return -1
    if isinstance(choice, int | float):
        return next((each.start for each in numbers(text) if each.value == choice), -1)
    if not isinstance(choice, str) or not choice.strip():
        return -1
    words = folded_words(choice[:100])
    found = [_position(each, text) for each in (words, *_synonyms().get(words, ())) if each]
    return min((at for at in found if at >= 0), default=-1)


def _position(word: str, text: str) -> int:
    if not word.isascii():
        return text.find(word)
    match = re.search(rf"(?<![a-z0-9]){re.escape(word)}(?![a-z0-9])", text)
    return match.start() if match else -1


@cache
def _synonyms() -> dict[str, list[str]]:
    table: dict[str, list[str]] = {}
    for english, chinese in rows(lexicon.SYNONYMS):
        for word in english:
            table.setdefault(word, [*chinese, *(each for each in english if len(each) > 1)])
    return table


def _boolean(slots: Slots, parameter: Parameter) -> bool | None:
    """Whether it is asked for, or to be left out; a required switch that nobody mentions is off."""
    text = slots.question.command
    if _IS_A_SWITCH.search(parameter.words):
        wanted = False if lexicon.OFF.search(text) else True if lexicon.ON.search(text) else None
    else:
        at = min(_positions(parameter, text), default=None)
        wanted = None if at is None else lexicon.NEGATION.search(text, max(at - 12, 0), at) is None
    return False if wanted is None and parameter.required and "default" not in parameter.schema else wanted


def _positions(parameter: Parameter, text: str) -> list[int]:
    about = {concept for concept, _ in concepts_in(parameter.words)}
    words = [word for word in parameter.words.split() if len(word) > 3 and word not in ("include", "with", "show")]
    named = [at for word in words if (at := text.find(word.removesuffix("s"))) >= 0]
    return named + [position for concept, position in concepts_in(text) if concept in about]


def _array(slots: Slots, parameter: Parameter) -> list[Any] | None:
    item = parameter.items
    if item.role == "choice":
        return _choices(slots, item)[:_MOST_ITEMS] or None
    items: list[Any] = []
    while len(items) < _MOST_ITEMS:
        value = replace(slots, missing=[]).value_of(item)
        if value is None or value in items:
            break
        items.append(value)
    return items or None


def _object(slots: Slots, parameter: Parameter) -> dict[str, Any] | None:
    inner = replace(slots, missing=[])
    value = inner.filled(parameter.properties)
    if parameter.required:
        slots.missing += inner.missing
    return value if parameter.required or (value and not inner.missing) else None


def _days(slots: Slots, parameter: Parameter) -> float | None:
    """A number of days, within the schema's bounds; without a word about it the smallest."""
    wanted = horizon(slots.question.command) or horizon(slots.whole.command)
    if wanted is None:
        return _clamped(1, parameter) if parameter.required and "default" not in parameter.schema else None
    ahead = wanted.offset is not None and _WANTS_DAYS_AHEAD.search(parameter.about)
    return _clamped(wanted.offset or 0 if ahead else wanted.count, parameter)


def _clamped(value: float, parameter: Parameter) -> float:
    low, high = parameter.number("minimum"), parameter.number("maximum")
    value = value if low is None else max(value, low)
    return value if high is None else min(value, high)


def _number(slots: Slots, parameter: Parameter) -> float | None:
    """The number with the parameter's word or unit beside it; else, where one is required, the first free one."""
    question = slots.question
    free: list[Found] = []
    for text in (question.command, question.flat):
        free = free or [
            each for each in numbers(text) if abs(each.value) < 1e15 and ("number", each.start) not in slots.taken
        ]
    words = set(_unit_words(parameter))
    found = next((each for each in free if _is_beside(each, question.flat, words)), None)
    if found is None and parameter.required:
        found = next((each for each in free if not _NO_QUANTITY.search(question.flat[each.start : each.end])), None)
    if found is None:
        return None
    slots.taken.add(("number", found.start))
    return _number_as(parameter, found.value)


def _is_beside(number: Found, text: str, words: set[str]) -> bool:
    after = text[number.end : number.end + 16].lstrip(" -")
    before = text[max(number.start - 16, 0) : number.start].rstrip(" :=#")
    return any(after.startswith(word) or (len(word) > 1 and before.endswith(word)) for word in words)


def _unit_words(parameter: Parameter) -> Iterator[str]:
    named = parameter.words.split()
    yield from (word for word in named if len(word) > 1)
    yield from re.findall(r"[㐀-鿿]{2,4}", parameter.about)
    for english, units in rows(lexicon.UNITS):
        if not set(english).isdisjoint(named):
            yield from units


def _time_zone(slots: Slots, parameter: Parameter) -> str | None:
    place: NamedPlace | None = slots.take(_cued(slots, parameter, [each for each in slots.places if each.value.zone]))
    return place.zone if place else None


def _place(slots: Slots, parameter: Parameter) -> str | None:
    place: NamedPlace | None = slots.take(
        _cued(slots, parameter, [each for each in slots.places if each.value.is_place])
    )
    if place is None:
        return None
    return place.english if place.english and _WANTS_ENGLISH.search(parameter.about) else place.name


def _cued(slots: Slots, parameter: Parameter, found: list[Found]) -> list[Found]:
    """Those first before which it is said that something comes from there, or goes there, as the parameter asks."""
    cue = lexicon.FROM if parameter.is_source else lexicon.TO if parameter.is_target else None
    text = slots.question.flat
    return sorted(found, key=lambda each: not (cue and cue.search(text, max(each.start - 8, 0), each.start)))


def _language(slots: Slots, parameter: Parameter) -> str | None:
    language = _spoken_language(slots, parameter)
    if language is None:
        return "auto" if parameter.is_source and parameter.required else None
    return language.english if _WANTS_LANGUAGE_NAMES.search(parameter.about) else language.code


def _spoken_language(slots: Slots, parameter: Parameter) -> Language | None:
    """The language that a parameter is about; without a word, Chinese goes into English and all else into Chinese."""
    if parameter.is_source:
        return source_language(slots.question.command)
    text = text_to_handle(slots.question)
    named = slots.language or next(iter(targets(slots.question.command).known), None)
    if named is not None or text is None:
        return named
    return language_of("en" if _HAN.search(text) and not _KANA.search(text) else "zh")


def _text(slots: Slots, _: Parameter) -> Any:
    return slots.take(_texts(text_to_handle(slots.question)))


def _subject(slots: Slots, parameter: Parameter) -> Any:
    question = slots.question
    opening = _SEARCH_OPENING.match(question.flat)
    rest = question.raw[opening.end() if opening else 0 :].strip(" ?.!。，,？！\n")
    return slots.take(_texts(question.payload or rest)) if parameter.required else None


def _other(slots: Slots, parameter: Parameter) -> Any:
    return slots.take(_texts(slots.question.payload)) if parameter.required else None


def _name(slots: Slots, parameter: Parameter) -> Any:
    return slots.take(_matches(lexicon.NAMED, slots.question, "name")) or _other(slots, parameter)


def _texts(text: str | None) -> list[Found]:
    return [Found("text", text, 0, 0)] if text else []


def _matches(pattern: re.Pattern[str], question: Question, role: str) -> Iterator[Found]:
    """What the first group of a pattern finds in the folded text, as written."""
    for match in pattern.finditer(question.flat):
        yield Found(role, question.raw[slice(*match.span(1))].strip(), *match.span(1))


def _id(slots: Slots, parameter: Parameter) -> Any:
    """The word with a digit nearest to what the parameter is about; else one that is called an id, or in capitals."""
    if not parameter.required:
        return None
    about = {concept for concept, _ in concepts_in(parameter.about)}
    near = [position for concept, position in concepts_in(slots.question.command) if concept in about]
    found = list(_matches(lexicon.ID, slots.question, "id"))
    found.sort(key=lambda each: min((abs(each.start - position) for position in near), default=0))
    if parameter.type != "string":
        value = slots.take(each for each in found if each.value.isdecimal())
        return None if value is None else int(value)
    capitals = (Found("id", each[1], *each.span()) for each in lexicon.CAPITALS.finditer(slots.question.raw))
    return slots.take([*found, *_matches(lexicon.LABELLED, slots.question, "id"), *capitals])


def _patterned(slots: Slots, parameter: Parameter) -> Any:
    """A word that the schema's pattern allows, as written or in capitals."""
    allowed = _validator(str(parameter.schema["pattern"])[:500])
    if allowed is None:
        return None
    question = slots.question
    tokens = [Found("pattern", each[0], *each.span()) for each in _TOKEN.finditer(question.raw)]
    capitals = [replace(each, value=each.value.upper()) for each in tokens]
    found = [*tokens, *_matches(lexicon.ID, question, "pattern"), *capitals, *_texts(question.payload)]
    found += [*dates(question.flat), *times_of_day(question.flat)]
    return slots.take(_cued(slots, parameter, [each for each in found if allowed.isinstance_python(each.value)]))


@cache
def _validator(pattern: str) -> SchemaValidator | None:
    """Pydantic's own engine takes linear time whatever the pattern; what it cannot read is not filled."""
    try:
        return SchemaValidator({"type": "str", "pattern": pattern})
    except SchemaError:
        return None


def _date_time(slots: Slots, parameter: Parameter) -> Any:
    date, time = slots.take(dates(slots.question.flat)), slots.take(times_of_day(slots.question.flat))
    if date and time:
        return f"{date}T{time}:00"
    return slots.take(spans_from_now(slots.question.flat)) if _WANTS_DURATIONS.search(parameter.about) else None


def _finding(find: Callable[[Question], Iterable[Found]]) -> Callable[[Slots, Parameter], Any]:
    """Fill a parameter with the first that is found."""
    return lambda slots, _: slots.take(find(slots.question))


_BY_ROLE: Mapping[str, Callable[[Slots, Parameter], Any]] = {
    "choice": _choice,
    "boolean": _boolean,
    "array": _array,
    "object": _object,
    "days": _days,
    "number": _number,
    "time_zone": _time_zone,
    "language": _language,
    "text": _text,
    "place": _place,
    "date_time": _date_time,
    "duration": _finding(lambda question: spans_from_now(question.flat)),
    "date": _finding(lambda question: dates(question.flat)),
    "time_of_day": _finding(lambda question: times_of_day(question.flat)),
    "email": _finding(lambda question: _matches(lexicon.EMAIL, question, "email")),
    "url": _finding(lambda question: _matches(lexicon.URL, question, "url")),
    "pattern": _patterned,
    "id": _id,
    "name": _name,
    "subject": _subject,
    "other": _other,
}
