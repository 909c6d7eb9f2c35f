"""How string parameters are filled, by what they mean."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from app.chat_models.offline import texts
from app.chat_models.offline.durations import durations
from app.chat_models.offline.languages import source_language, target_language
from app.chat_models.offline.numbers import dates, times_of_day
from app.chat_models.offline.roles import Role, is_source, is_target
from app.chat_models.offline.schemas import Parameter
from app.chat_models.offline.sources import Sources
from app.chat_models.offline.vocabulary import concepts_in
from app.languages import Language, language_of

__all__ = ["BY_ROLE", "spoken_language"]

_FROM = re.compile(r"(?:从|由|自|\bfrom) ?$")
_TO = re.compile(r"(?:到|去|飞|往|至|抵达|\bto|\binto) ?$")
_NAMED = re.compile(
    r"(?:名叫|名为|叫做|叫|姓名[是为:]|名字[是为:]|\bnamed|\bcalled|\bname is) ?([㐀-鿿·]{1,8}|[a-z][\w.-]*)"
)
_EMAIL = re.compile(r"([a-z0-9._%+-]{1,64}@[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63}){1,5})")
_URL = re.compile(r"(https?://[^\s，。、]{1,500})")
_LABELLED = re.compile(
    r"(?:代码|编号|单号|号码|\b(?:id|code|number|symbol|ticker)) ?(?:是|为|is|=|:|#) ?([a-z][a-z0-9._-]{0,39})"
)
_CAPITALS = re.compile(r"\b[A-Z][A-Z0-9.]{1,9}\b", re.ASCII)
_WANTS_LANGUAGE_NAMES = re.compile(
    r"\b(?:such as|eg|e g|like) (?:english|chinese|japanese|french)|language names?\b|语言名称"
)
_WANTS_ENGLISH = re.compile(r"\bin english\b|english name|英文名|拼音")
_WANTS_DURATIONS = re.compile(r"\bduration\b|时长")
_HAN, _KANA = re.compile(r"[㐀-鿿]"), re.compile(r"[぀-ヿ]")


def spoken_language(sources: Sources, parameter: Parameter) -> Language | None:
    """The language that a parameter is about; without a word, Chinese goes into English and all else into Chinese."""
    if is_source(parameter):
        return source_language(sources.question.command)
    named = sources.language or target_language(sources.question.command)
    text = texts.text_to_handle(sources.question)
    if named is not None or text is None:
        return named
    return language_of("en" if _HAN.search(text) and not _KANA.search(text) else "zh")


def _language(sources: Sources, parameter: Parameter) -> str | None:
    language = spoken_language(sources, parameter)
    if language is None:
        return "auto" if is_source(parameter) and parameter.required else None
    return language.english if _WANTS_LANGUAGE_NAMES.search(parameter.about) else language.code


def _time_zone(sources: Sources, parameter: Parameter) -> str | None:
    place = _place_for(sources, parameter, lambda each: each.zone is not None)
    return place.zone if place else None


def _place(sources: Sources, parameter: Parameter) -> str | None:
    place = _place_for(sources, parameter, lambda each: each.zone is None or each.english is not None)
    if place is None:
        return None
    return place.english if place.english and _WANTS_ENGLISH.search(parameter.about) else place.name


def _place_for(
    sources: Sources, parameter: Parameter, suits: Callable[[texts.NamedPlace], bool]
) -> texts.NamedPlace | None:
    free = list(filter(suits, sources.places))
    cue = _FROM if is_source(parameter) else _TO if is_target(parameter) else None
    cued = [each for each in free if cue and cue.search(each.before)]
    return sources.take("place", cued + free)


def _text(sources: Sources, _: Parameter) -> str | None:
    text = texts.text_to_handle(sources.question)
    return None if text is None else sources.take("text", (text,))


def _identifier(sources: Sources, parameter: Parameter) -> Any:
    if not parameter.required:
        return None
    about = {concept for concept, _ in concepts_in(parameter.about)}
    near = [position for concept, position in concepts_in(sources.question.command) if concept in about]
    found = list(texts.identifiers(sources.question.flat))
    found.sort(key=lambda each: min((abs(each[1] - position) for position in near), default=0))
    if parameter.type != "string":
        found = [each for each in found if each[0].isdecimal()]
    taken = sources.take("identifier", found)
    if parameter.type != "string":
        return int(taken[0]) if taken else None
    if taken is None:
        return _matching(_LABELLED)(sources, parameter) or sources.take(
            "identifier", _CAPITALS.findall(sources.question.raw)
        )
    return sources.question.raw[taken[1] : taken[1] + len(taken[0])]


def _date(sources: Sources, _: Parameter) -> str | None:
    return sources.take("date", dates(sources.question.flat))


def _time_of_day(sources: Sources, _: Parameter) -> str | None:
    return sources.take("time", times_of_day(sources.question.flat))


def _date_time(sources: Sources, parameter: Parameter) -> str | None:
    date, time = _date(sources, parameter), _time_of_day(sources, parameter)
    if date and time:
        return f"{date}T{time}:00"
    return _duration(sources, parameter) if _WANTS_DURATIONS.search(parameter.about) else None


def _duration(sources: Sources, _: Parameter) -> str | None:
    return sources.take("duration", durations(sources.question.flat))


def _subject(sources: Sources, parameter: Parameter) -> str | None:
    text = texts.subject(sources.question)
    return sources.take("text", (text,)) if text and parameter.required else None


def _other(sources: Sources, parameter: Parameter) -> str | None:
    payload = sources.question.payload
    return sources.take("text", (payload,)) if payload and parameter.required else None


def _name(sources: Sources, parameter: Parameter) -> str | None:
    return _matching(_NAMED)(sources, parameter) or _other(sources, parameter)


def _matching(pattern: re.Pattern[str]) -> Callable[[Sources, Parameter], str | None]:
    def fill(sources: Sources, _: Parameter) -> str | None:
        found = texts.matched(pattern, sources.question)
        return sources.take(pattern.pattern, (found,)) if found else None

    return fill


BY_ROLE: Mapping[Role, Callable[[Sources, Parameter], Any]] = {
    Role.TIME_ZONE: _time_zone,
    Role.LANGUAGE: _language,
    Role.TEXT: _text,
    Role.PLACE: _place,
    Role.DATE_TIME: _date_time,
    Role.DURATION: _duration,
    Role.DATE: _date,
    Role.TIME_OF_DAY: _time_of_day,
    Role.EMAIL: _matching(_EMAIL),
    Role.URL: _matching(_URL),
    Role.IDENTIFIER: _identifier,
    Role.NAME: _name,
    Role.SUBJECT: _subject,
    Role.OTHER: _other,
}
"""The roles of strings; an identifier may be a whole number as well."""
