"""A tool's result as a sentence or a short list: by its shape, with the titles that the tool's result type gives."""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

from pydantic_core import from_json

from app.languages import language_of
from app.messages import ToolResponse
from app.offline import lexicon
from app.offline.figures import Days
from app.offline.phrases import is_said, listed, say
from app.offline.question import folded_words
from app.places.gazetteer import zone_ids

__all__ = ["Reader", "is_failure", "told"]

_LONGEST, _LONGEST_VALUE, _MOST_ENTRIES, _DEEPEST, _FARTHEST = 2000, 600, 14, 4, 366
_REMINDER = re.compile(r"\s*<reminder>.*?</reminder>", re.DOTALL)
# The shapes of what makes up a clock.
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIME = re.compile(r"[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?")
_OFFSET = re.compile(r"[+-][0-9]{2}:[0-9]{2}")
_FIXED_ZONE = re.compile(r"(?:UTC|GMT)[+-]?[0-9:]*")
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_UNITS = {"degrees celsius": " °C", "degrees fahrenheit": " °F", "per cent": "%", "percent": "%"}
_LANGUAGE = re.compile(r"语言|\blanguage\b")


@dataclass(frozen=True, slots=True)
class Reader:
    """Whom a result is told to, and what about."""

    chinese: bool
    place: str | None = None
    """The place that the call was about, in the question's words."""
    days: Days | None = None
    """The days that the question is about."""
    fields: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The schemas of the result's fields by their names, wherever they stand."""

    def label(self, key: str) -> str:
        """What a field is called: its title in one language, of ``温度 / temperature``; else its name in words."""
        chinese, _, english = str(self.fields.get(key, {}).get("title", "")).partition(" / ")
        return (chinese if self.chinese else english or chinese) or folded_words(key[:60])

    def unit(self, key: str) -> str:
        """The unit of a field's figures, where its description is one."""
        described = str(self.fields.get(key, {}).get("description", ""))
        return _UNITS.get(described.lower(), f" {described}" if 0 < len(described) <= 4 else "")

    def say(self, key: str, **values: object) -> str:
        """Say something in the reader's language."""
        return say(key, self.chinese, **values)

    def row(self, *parts: str) -> str:
        """The parts that are not empty, with commas."""
        return self.say("comma").join(filter(None, parts))


def told(response: ToolResponse, reader: Reader) -> str:
    """Tell what a tool answered, in at most about 2,000 characters; a failure is told as one."""
    text = _told(_read(response.text), response.name, reader).strip()
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def is_failure(response: ToolResponse) -> bool:
    """Whether a tool answered with an error."""
    value = _read(response.text)
    return isinstance(value, dict) and bool(value.get("error"))


def _read(text: str) -> Any:
    """A result as JSON where it is; reminders to the model stand beside the result and are no part of it."""
    for each in (text, _REMINDER.sub("", text)):
        with suppress(ValueError):
            return from_json(each)
    return _REMINDER.sub("", text)


def _told(value: Any, tool: str, reader: Reader) -> str:
    if isinstance(value, dict) and value.get("error"):
        return _failure(value["error"], tool, reader)
    if isinstance(value, dict):
        texts = [each for each in value.values() if each not in (None, "")]
        bare = texts[0] if len(texts) == 1 and isinstance(texts[0], str) else ""
        known = bare or _clock(value, reader) or _translation(value, reader)
        text = known or "\n".join(_lines(_focused(value, reader), reader))
    elif isinstance(value, list):
        text = "\n".join(_entries(value, reader, 0))
    elif value is None or value == "Done":
        text = reader.say("done", tool=tool)
    else:
        text = value if isinstance(value, str) else reader.say("returned", tool=tool, value=_scalar(value, reader))
    return text if text.strip() else reader.say("nothing", tool=tool)


def _failure(error: Any, tool: str, reader: Reader) -> str:
    details = error if isinstance(error, dict) else {"message": error}
    reason = str(details.get("message") or details.get("kind") or reader.say("no_reason"))
    reason = reason[:_LONGEST_VALUE].rstrip(" .。")
    if isinstance(hint := details.get("hint"), str) and hint:
        reason += reader.say("hint", hint=hint[:_LONGEST_VALUE])
    return reader.say("rejected" if details.get("kind") == "rejected" else "failed", tool=tool, reason=reason)


def _clock(value: Mapping[str, Any], reader: Reader) -> str | None:
    """Tell the time when a result is a date, a time and a time zone, in whatever fields, and says nothing else."""
    texts = [each for each in value.values() if isinstance(each, str)]
    today = next((found for each in texts if (found := _date(each))), None)
    time = next((each for each in texts if _TIME.fullmatch(each)), None)
    zone = next((each for each in texts if each in zone_ids() or _FIXED_ZONE.fullmatch(each)), None)
    if today is None or time is None or zone is None or len(texts) < len(value):
        return None
    offset = next((each for each in texts if _OFFSET.fullmatch(each)), "")
    if any(time not in each for each in set(texts) - {today.isoformat(), time, zone, offset, *_WEEKDAYS}):
        return None
    where = zone if not offset or offset in zone else f"{zone}{reader.say('comma')}UTC{offset}"
    gap = " " if reader.chinese and (reader.place or "中")[-1].isascii() else ""
    start = reader.say("now_in" if reader.place else "now", place=reader.place, gap=gap)
    text = reader.say("clock", start=start, day=_day(today, reader), time=time, where=where)
    ahead = (reader.days.offset if reader.days else None) or 0
    if not 0 < ahead <= _FARTHEST or today > date(9990, 1, 1):
        return text
    # The date of the later day that the question is about.
    named = reader.say(f"in_{ahead}_days" if is_said(f"in_{ahead}_days") else "in_days", count=ahead)
    return text + reader.say("later", named=named, day=_day(today + timedelta(days=ahead), reader, "later_day"))


def _day(day: date, reader: Reader, form: str = "day") -> str:
    weekday = reader.say(_WEEKDAYS[day.weekday()])
    return reader.say(form, weekday=weekday, day=day.day, month=day.month, name=f"{day:%B}", year=day.year)


def _date(text: Any) -> date | None:
    with suppress(ValueError):
        return date.fromisoformat(text) if isinstance(text, str) and _DATE.fullmatch(text) else None
    return None


def _translation(value: Mapping[str, Any], reader: Reader) -> str | None:
    """A text beside the language that it is in, by the titles of the fields."""
    strings = {key: each for key, each in value.items() if isinstance(each, str) and each}
    spoken = [key for key in strings if _LANGUAGE.search(reader.label(key))]
    targets = [key for key in spoken if not lexicon.SOURCE.search(key)]
    texts = [key for key in strings if key not in spoken]
    if len(targets) != 1 or len(texts) != 1 or len(value) > 4:
        return None
    language, code, text = language_of(strings[targets[0]]), strings[targets[0]][:40], strings[texts[0]]
    name = (language.chinese if reader.chinese else language.english) if language else code
    heading = reader.say("translation", title=reader.label(texts[0]).capitalize(), language=name)
    return f"{heading.rstrip()}\n{text}" if "\n" in text else f"{heading}{text}"


def _focused(value: Mapping[str, Any], reader: Reader) -> Mapping[str, Any]:
    """Keep, of a list of days, the one that the question is about; figures beside it do not belong to another day."""
    days, found = reader.days, next((key for key, each in value.items() if _are_days(each)), None)
    if found is None or days is None or (days.offset is None and not days.date):
        return value
    nested = {key: each for key, each in value.items() if isinstance(each, dict | list)}
    listed_days = value[found] if days.date else value[found][days.offset : (days.offset or 0) + 1]
    kept = [each for each in listed_days if str(next(iter(each.values()))).endswith(days.date)]
    if not kept:
        return {"": reader.say("no_such_day"), **nested}
    if days.offset != 0:
        nested = {key: each for key, each in nested.items() if not _has_figures(each)}
    return nested | {found: kept}


def _has_figures(value: Any) -> bool:
    return isinstance(value, dict) and any(isinstance(one, int | float) for one in value.values())


def _are_days(value: Any) -> bool:
    """Whether something is a list of objects that begin with a date."""
    entries = value if isinstance(value, list) and all(isinstance(each, dict) for each in value) else []
    return bool(entries) and all(_date(next(iter(each.values()), None)) for each in entries)


def _lines(value: Mapping[str, Any], reader: Reader, depth: int = 0, *, entry: bool = False) -> Iterator[str]:
    """One line of what is simple; what is nested on its own: objects under their names, lists entry by entry."""
    simple = {key: each for key, each in value.items() if not isinstance(each, dict | list) and each not in (None, "")}
    pending = [_named(simple, reader, entry) if depth else _fields(simple, reader)]
    for key, each in list(value.items())[: 4 * _MOST_ENTRIES]:
        if not isinstance(each, dict | list):
            yield from filter(None, pending)
            pending = []
        elif depth < _DEEPEST:
            lines = list(_lines(each, reader, depth + 1) if isinstance(each, dict) else _entries(each, reader, depth))
            heading = "" if _holds_objects(each) else reader.label(key)
            if lines and heading:
                lines[0] = f"{heading[:1].upper()}{heading[1:]}{reader.say('colon')}{lines[0]}"
            yield from lines


def _holds_objects(value: Any) -> bool:
    return isinstance(value, list) and any(isinstance(each, dict | list) for each in value)


def _entries(entries: list[Any], reader: Reader, depth: int) -> Iterator[str]:
    shown = entries[:_MOST_ENTRIES]
    if _holds_objects(shown):
        for each in shown:
            yield from _lines(each if isinstance(each, dict) else {"": each}, reader, depth + 1, entry=True)
    elif shown:
        yield listed((_scalar(each, reader) for each in shown), reader.chinese)
    if len(entries) > len(shown):
        yield reader.say("in_all", count=len(entries))


def _named(simple: Mapping[str, Any], reader: Reader, entry: bool) -> str:
    """A thing with its leading texts bare, the first as its name, and the other fields with theirs."""
    bare: dict[str, str] = {}
    for key, each in simple.items():
        if not isinstance(each, str) or (bare and any(map(str.isdigit, each))):
            break
        bare[key] = _scalar(each, reader)
    name, *more = [*dict.fromkeys(bare.values()), ""]
    rest = _fields({key: each for key, each in simple.items() if key not in bare}, reader)
    if entry and name:
        described = reader.row(*more, rest)
        return f"{name}{reader.say('colon')}{described}" if described else name
    inside = reader.row(*more)
    return reader.row(reader.say("inside", name=name, inside=inside) if inside else name, rest)


def _fields(simple: Mapping[str, Any], reader: Reader) -> str:
    shown = []
    for key, value in list(simple.items())[: 3 * _MOST_ENTRIES]:
        unit = reader.unit(key) if isinstance(value, int | float) else ""
        shown.append(f"{reader.label(key)} {_scalar(value, reader)}{unit}".strip())
    return reader.row(*shown)


def _scalar(value: Any, reader: Reader) -> str:
    if isinstance(value, bool):
        return reader.say("yes" if value else "no")
    return str(value)[:_LONGEST_VALUE]
