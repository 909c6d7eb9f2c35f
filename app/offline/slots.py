"""A tool's arguments out of a question: every parameter takes what was found for its role."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from app.languages import Language, language_of
from app.offline import lexicon, values, wording
from app.offline.languages import source_language, targets, text_to_handle
from app.offline.numbers import Found, dates, spans_from_now, times_of_day
from app.offline.parameters import Parameter
from app.offline.places import NamedPlace
from app.offline.question import Question

__all__ = ["Slots"]

_MOST_ITEMS = 20
_HAN, _KANA = re.compile(r"[㐀-鿿]"), re.compile(r"[぀-ヿ]")
# How a description asks for languages by name, for names of places in English, for durations.
_WANTS_LANGUAGE_NAMES = re.compile(
    r"\b(?:such as|eg|e g|like) (?:english|chinese|japanese|french)|language names?\b|语言名称"
)
_WANTS_ENGLISH = re.compile(r"\bin english\b|english name|英文名|拼音")
_WANTS_DURATIONS = re.compile(r"\bduration\b|时长")
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

    def value_of(self, parameter: Parameter) -> Any:
        """Find the value of one parameter: given by name, or found for its role; ``None`` where there is none."""
        given = self.pairs.get(parameter.name.lower()) or self._assigned(parameter)
        value = values.typed(given, parameter) if given else None
        if value is not None:
            return value
        finder = _FINDERS.get(parameter.role)
        return self.take(finder(self.question)) if finder else _BY_ROLE[parameter.role](self, parameter)

    def take(self, found: Iterable[Found]) -> Any:
        """Take the first value that is still there."""
        for each in found:
            if (each.role, each.value) not in self.taken:
                self.taken.add((each.role, each.value))
                return each.value
        return None

    def _assigned(self, parameter: Parameter) -> str | None:
        """A value that any question may give as ``name=value``, for numbers and plain words."""
        if len(parameter.words) < 2 or parameter.role not in _ASSIGNABLE:
            return None
        name = re.escape(parameter.name.lower())
        pattern = re.compile(rf"(?<![a-z0-9]){name} ?(?:=|:|为|是|is\b) ?([\w.+-]{{1,100}})")
        return next((each.value for each in wording.matches(pattern, self.question, "")), None)


def _choice(slots: Slots, parameter: Parameter) -> Any:
    found = _choices(slots, parameter)
    is_given = "const" in parameter.schema or (parameter.required and len(parameter.choices) == 1)
    return found[0] if found else parameter.choices[0] if is_given else None


def _choices(slots: Slots, parameter: Parameter) -> list[Any]:
    """The values that the question mentions; a language where they are languages."""
    if language := _spoken_language(slots, parameter):
        names = (language.code.lower(), language.english.lower(), language.chinese)
        if spoken := [each for each in parameter.choices if isinstance(each, str) and each.lower() in names]:
            return spoken[:1]
    return values.mentioned(parameter, slots.question.command)


def _boolean(slots: Slots, parameter: Parameter) -> bool | None:
    """Whether it is wanted; a required switch that nobody mentions is off."""
    wanted = values.is_wanted(parameter, slots.question.command)
    return False if wanted is None and parameter.required and "default" not in parameter.schema else wanted


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
    return values.days(parameter, slots.question.command, slots.whole.command)


def _number(slots: Slots, parameter: Parameter) -> float | None:
    return values.number(parameter, (slots.question.command, slots.question.flat), slots.taken)


def _time_zone(slots: Slots, parameter: Parameter) -> str | None:
    place: NamedPlace | None = slots.take(_cued(slots, parameter, [each for each in slots.places if each.value.zone]))
    return place.zone if place else None


def _place(slots: Slots, parameter: Parameter) -> str | None:
    found = [each for each in slots.places if each.value.is_place]
    place: NamedPlace | None = slots.take(_cued(slots, parameter, found))
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
    named = slots.language or next(iter(targets(slots.question.command).known), None)
    text = text_to_handle(slots.question)
    if named is not None or text is None:
        return named
    return language_of("en" if _HAN.search(text) and not _KANA.search(text) else "zh")


def _subject(slots: Slots, parameter: Parameter) -> Any:
    question = slots.question
    opening = lexicon.SEARCH_OPENING.match(question.flat)
    rest = question.raw[opening.end() if opening else 0 :].strip(" ?.!。，,？！\n")
    return slots.take(_texts(question.payload or rest)) if parameter.required else None


def _other(slots: Slots, parameter: Parameter) -> Any:
    return slots.take(_texts(slots.question.payload)) if parameter.required else None


def _name(slots: Slots, parameter: Parameter) -> Any:
    return slots.take(wording.matches(lexicon.NAMED, slots.question, "name")) or _other(slots, parameter)


def _texts(text: str | None) -> list[Found]:
    return [Found("text", text, 0, 0)] if text else []


def _id(slots: Slots, parameter: Parameter) -> Any:
    value = slots.take(wording.ids(parameter, slots.question)) if parameter.required else None
    return value if value is None or parameter.type == "string" else int(value)


def _patterned(slots: Slots, parameter: Parameter) -> Any:
    return slots.take(_cued(slots, parameter, wording.allowed(parameter, slots.question)))


def _date_time(slots: Slots, parameter: Parameter) -> Any:
    date, time = slots.take(dates(slots.question.flat)), slots.take(times_of_day(slots.question.flat))
    if date and time:
        return f"{date}T{time}:00"
    return slots.take(spans_from_now(slots.question.flat)) if _WANTS_DURATIONS.search(parameter.about) else None


# Roles for which the first that is found will do.
_FINDERS: Mapping[str, Callable[[Question], Iterable[Found]]] = {
    "text": lambda question: _texts(text_to_handle(question)),
    "duration": lambda question: spans_from_now(question.flat),
    "date": lambda question: dates(question.flat),
    "time_of_day": lambda question: times_of_day(question.flat),
    "email": lambda question: wording.matches(lexicon.EMAIL, question, "email"),
    "url": lambda question: wording.matches(lexicon.URL, question, "url"),
}
_BY_ROLE: Mapping[str, Callable[[Slots, Parameter], Any]] = {
    "choice": _choice,
    "boolean": _boolean,
    "array": _array,
    "object": _object,
    "days": _days,
    "number": _number,
    "time_zone": _time_zone,
    "language": _language,
    "place": _place,
    "date_time": _date_time,
    "pattern": _patterned,
    "id": _id,
    "name": _name,
    "subject": _subject,
    "other": _other,
}
