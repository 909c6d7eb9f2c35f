"""Results: a tool's result as a sentence or a short list, in the words of its output schema."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from pydantic_core import from_json

from app.gazetteer.gazetteer import zone_ids
from app.gazetteer.languages import language_of
from app.offline.days import Days
from app.offline.sentences import say
from app.offline.tools import words_of

__all__ = ["Result"]

_LONGEST, _LONGEST_VALUE, _MOST_ENTRIES, _DEEPEST = 2000, 600, 14, 4
_REMINDER = re.compile(r"\s*<reminder>.*?</reminder>", re.DOTALL)
_TIME = re.compile(r"[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?")
_OFFSET, _ZONE = re.compile(r"[+-][0-9]{2}:[0-9]{2}"), re.compile(r"(?:UTC|GMT)[+-]?[0-9:]*")
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_UNITS = {"degrees celsius": " °C", "degrees fahrenheit": " °F", "per cent": "%", "percent": "%"}


@dataclass(frozen=True, slots=True)
class Result:
    """Renders the result of one call.

    Args:
        tool: The tool's name.
        place: The place of the call, as the question writes it.
        days: The days that the question names.
        fields: The schemas of the result's fields, at any depth, by name.
    """

    tool: str
    chinese: bool
    place: str = ""
    days: Sequence[Days] = ()
    fields: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def render(self, text: str) -> str:
        """A result, or its failure, in at most about 2,000 characters."""
        value = _read(text)
        if isinstance(value, dict) and value.get("error"):
            shown = self._failure(value["error"])
        elif isinstance(value, dict):
            known = self._clock(value) or self._translation(value) or _sentence(value)
            shown = known or "\n".join(self._lines(self._focused(value)))
        elif isinstance(value, list):
            shown = "\n".join(self._entries(value, 0))
        elif value is None or value == "Done":
            shown = self._say("done", tool=self.tool)
        else:
            shown = (
                value if isinstance(value, str) else self._say("returned", tool=self.tool, value=self._scalar(value))
            )
        shown = shown.strip() or self._say("nothing", tool=self.tool)
        return shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}…"

    def _say(self, key: str, **values: object) -> str:
        return say(key, self.chinese, **values)

    def _scalar(self, value: Any) -> str:
        return self._say("yes" if value else "no") if isinstance(value, bool) else str(value)[:_LONGEST_VALUE]

    def _label(self, key: str) -> str:
        """A field's title in one language, from ``温度 / temperature``, otherwise its name in words."""
        chinese, _, english = str(self.fields.get(key, {}).get("title", "")).partition(" / ")
        return (chinese if self.chinese else english or chinese) or words_of(key[:60])

    def _failure(self, error: Any) -> str:
        details = error if isinstance(error, dict) else {"message": error}
        reason, hint = (str(details.get(key) or "")[:_LONGEST_VALUE].rstrip(" .。") for key in ("message", "hint"))
        reason = reason or str(details.get("kind") or "?")
        reason = self._say("hint", reason=reason, hint=hint) if hint else reason
        return self._say("rejected" if details.get("kind") == "rejected" else "failed", tool=self.tool, reason=reason)

    def _clock(self, value: Mapping[str, Any]) -> str | None:
        """The time if a result is a date, a time and a time zone and says nothing else."""
        texts = [str(each) for each in value.values()]
        today = next((found for each in texts if (found := _date(each))), None)
        time, offset = (next(filter(form.fullmatch, texts), "") for form in (_TIME, _OFFSET))
        zone = next((each for each in texts if each in zone_ids() or _ZONE.fullmatch(each)), "")
        others = set(texts) - {time, zone, offset, str(today), *_WEEKDAYS}
        if not (today and time and zone) or any(time not in each for each in others):
            return None
        named = zone if offset in zone else f"{zone}{self._say('comma')}UTC{offset}"
        place = f"{self.place} " if self.chinese and self.place[-1:].isalnum() and self.place.isascii() else self.place
        key = "clock_in" if place else "clock"
        return self._say(key, place=place, day=self._day("day", today), time=time, zone=named) + self._later(today)

    def _later(self, today: date) -> str:
        """The date and the weekday of "tomorrow" and the like."""
        first = min(today.toordinal(), date.max.toordinal() - 366)
        following = map(date.fromordinal, range(first, first + 366))
        meant = [each for each in self.days if each.is_part]
        day = next((each for each in following if any(one.include(each, today) for one in meant)), today)
        ahead = (day - today).days
        return (
            self._day("later", day, self._say(f"in_{ahead}" if ahead < 3 else "in_days", count=ahead))
            if ahead > 0
            else ""
        )

    def _day(self, key: str, day: date, named: str = "") -> str:
        weekday = self._say("weekdays").split()[day.weekday()]
        numbers = {"date": day.day, "month": day.month, "year": day.year}
        return self._say(key, weekday=weekday, name=f"{day:%B}", named=named, **numbers)

    def _translation(self, value: Mapping[str, Any]) -> str | None:
        """A text beside the language that it is in, by the titles of the fields."""
        strings = {key: each for key, each in value.items() if isinstance(each, str) and each}
        spoken = [key for key in strings if re.search(r"语言|\blanguage\b", self._label(key))]
        targets, texts = [key for key in spoken if key != "from"], [key for key in strings if key not in spoken]
        if len(targets) != 1 or len(texts) != 1 or len(value) > 4:
            return None
        code, text = strings[targets[0]][:40], strings[texts[0]]
        language = language_of(code)
        name = (language.chinese if self.chinese else language.english) if language else code
        colon = self._say("colon")
        heading = self._say("inside", name=self._label(texts[0]).capitalize(), inside=name)
        return f"{heading}{colon.rstrip()}\n{text}" if "\n" in text else f"{heading}{colon}{text}"

    def _focused(self, value: Mapping[str, Any]) -> Mapping[str, Any]:
        """Keep, of a list of days, those that the question names; figures beside it belong to today."""
        listed = next((key for key, each in value.items() if _days_of(each)), "")
        days = _days_of(value.get(listed))
        if not days or not any(each.is_part for each in self.days):
            return value
        meant = [{day for day in days if each.include(day, days[0])} for each in self.days]
        kept = set().union(*meant)
        note = "" if all(meant) else self._say("no_such_day", first=days[0], last=days[-1])
        others = {key: each for key, each in value.items() if key == "source" or isinstance(each, dict)}
        if days[0] not in kept:
            others = {
                k: v
                for k, v in others.items()
                if k == "source" or not any(isinstance(n, int | float) for n in v.values())
            }
        return (
            {"": note} | others | {listed: [each for each, day in zip(value[listed], days, strict=True) if day in kept]}
        )

    def _lines(self, value: Mapping[str, Any], depth: int = 0, *, entry: bool = False) -> Iterator[str]:
        """One line of what is simple; objects under their names, lists entry by entry."""
        simple = {key: one for key, one in value.items() if not isinstance(one, dict | list) and one not in (None, "")}
        yield from filter(None, [self._named(simple, entry=entry) if depth else self._fields(simple)])
        for key, each in list(value.items())[: 4 * _MOST_ENTRIES]:
            if isinstance(each, dict | list) and depth < _DEEPEST:
                lines = list(self._lines(each, depth + 1) if isinstance(each, dict) else self._entries(each, depth))
                label = (
                    ""
                    if isinstance(each, list) and any(isinstance(one, dict | list) for one in each)
                    else self._label(key)
                )
                heading = f"{label[:1].upper()}{label[1:]}{self._say('colon')}" if label else ""
                yield from [f"{heading}{line}" if n == 0 else line for n, line in enumerate(lines)]

    def _entries(self, entries: list[Any], depth: int) -> Iterator[str]:
        shown = entries[:_MOST_ENTRIES]
        if any(isinstance(each, dict | list) for each in shown):
            for each in shown:
                yield from self._lines(each if isinstance(each, dict) else {"": each}, depth + 1, entry=True)
        elif shown:
            yield self._say("and").join(map(self._scalar, shown))
        if len(entries) > len(shown):
            yield self._say("in_all", count=len(entries))

    def _named(self, simple: Mapping[str, Any], *, entry: bool) -> str:
        """A thing with its leading texts bare, the first as its name, and the other fields with theirs."""
        keys = list(simple)
        stop = next(
            (
                n
                for n, key in enumerate(keys)
                if not isinstance(simple[key], str) or (n and re.search("[0-9]", simple[key]))
            ),
            len(keys),
        )
        name, *more = [*dict.fromkeys(self._scalar(simple[key]) for key in keys[:stop]), ""]
        comma, rest = self._say("comma"), self._fields({key: simple[key] for key in keys[stop:]})
        inside = comma.join(filter(None, more))
        if entry and name:
            described = comma.join(filter(None, (inside, rest)))
            return f"{name}{self._say('colon')}{described}" if described else name
        return comma.join(filter(None, (self._say("inside", name=name, inside=inside) if inside else name, rest)))

    def _fields(self, simple: Mapping[str, Any]) -> str:
        """Each field with its name, and with its unit where its description is one."""
        shown = []
        for key, value in list(simple.items())[: 3 * _MOST_ENTRIES]:
            described = str(self.fields.get(key, {}).get("description", "")) if isinstance(value, int | float) else ""
            unit = _UNITS.get(described.lower(), f" {described}" if 0 < len(described) <= 4 else "")
            shown.append(f"{self._label(key)} {self._scalar(value)}{unit}".strip())
        return self._say("comma").join(shown)


def _read(text: str) -> Any:
    """A result as JSON if it is; reminders to the model stand beside the result and are no part of it."""
    for each in (text, _REMINDER.sub("", text)):
        with suppress(ValueError):
            return from_json(each)
    return _REMINDER.sub("", text)


def _date(text: Any) -> date | None:
    with suppress(ValueError):
        return date.fromisoformat(text) if isinstance(text, str) and len(text) == 10 and text[4] == "-" else None
    return None


def _days_of(value: Any) -> list[date]:
    """The dates of a list of objects that begin with a date; empty for anything else."""
    entries = value if isinstance(value, list) else []
    days = [_date(next(iter(each.values()), 0)) if isinstance(each, dict) else None for each in entries]
    return [each for each in days if each] if None not in days else []


def _sentence(value: Mapping[str, Any]) -> str | None:
    """The sentence that says all that a result holds, apart from ids."""
    texts = [str(each) for each in value.values() if each not in (None, "")]
    sentences = [each for each in texts if re.search(r"\w\s+\w|[㐀-鿿]{3}", each)]
    others = [each for each in texts if not re.fullmatch(r"(?=\S*[0-9])(?=\S*[A-Za-z])[\w-]{8,}", each)]
    return next((one for one in sentences if all(each in one for each in others)), None)
