"""Result rendering: a tool's result as a sentence or a short list, with the titles of the result's schema."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from pydantic_core import from_json

from app.gazetteer.gazetteer import zone_ids
from app.gazetteer.languages import language_of
from app.offline import lexicon
from app.offline.days import Days
from app.offline.question import folded_words
from app.offline.templates import has_template, listed, render
from toolchat.messages import ToolResponse

__all__ = ["ResultRenderer", "is_failure"]

_LONGEST, _LONGEST_VALUE, _MOST_ENTRIES, _DEEPEST, _FARTHEST = 2000, 600, 14, 4, 366
_REMINDER = re.compile(r"\s*<reminder>.*?</reminder>", re.DOTALL)
# The shapes of what makes up a clock.
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIME = re.compile(r"[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?")
_OFFSET = re.compile(r"[+-][0-9]{2}:[0-9]{2}")
_FIXED_ZONE = re.compile(r"(?:UTC|GMT)[+-]?[0-9:]*")
# Several words; a word of letters and digits.
_SENTENCE, _ID = re.compile(r"\w\s+\w|[㐀-鿿]{3}"), re.compile(r"(?=\S*[0-9])(?=\S*[A-Za-z])[\w-]{8,}")
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_UNITS = {"degrees celsius": " °C", "degrees fahrenheit": " °F", "per cent": "%", "percent": "%"}
_LANGUAGE = re.compile(r"语言|\blanguage\b")


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


def _are_objects(value: Any) -> bool:
    return isinstance(value, list) and any(isinstance(each, dict | list) for each in value)


def _date(text: Any) -> date | None:
    with suppress(ValueError):
        return date.fromisoformat(text) if isinstance(text, str) and _DATE.fullmatch(text) else None
    return None


def _are_days(value: Any) -> bool:
    """Whether something is a list of objects that begin with a date."""
    entries = value if isinstance(value, list) else []
    return bool(entries) and all(isinstance(each, dict) and _date(next(iter(each.values()), 0)) for each in entries)


def _sentence(value: Mapping[str, Any]) -> str | None:
    """The sentence that says all that a result holds, apart from ids."""
    texts = [str(each) for each in value.values() if each not in (None, "")]
    sentences = [each for each in texts if _SENTENCE.search(each)]
    return next((one for one in sentences if all(each in one or _ID.fullmatch(each) for each in texts)), None)


@dataclass(frozen=True, slots=True)
class ResultRenderer:
    """Renders tool results for one question.

    Args:
        chinese: Whether to answer in Chinese; otherwise in English.
        place: The place of the call, as the question writes it.
        days: The days that the question asks about.
        fields: The schemas of the result's fields, at any depth, by name.
    """

    chinese: bool
    place: str | None = None
    days: Sequence[Days] = ()
    fields: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def render(self, response: ToolResponse) -> str:
        """A tool's result, or its failure, in at most about 2,000 characters."""
        value, tool = _read(response.text), response.name
        if isinstance(value, dict) and value.get("error"):
            text = self._failure(value["error"], tool)
        elif isinstance(value, dict):
            known = self._clock(value) or self._translation(value) or _sentence(value)
            text = known or "\n".join(self._lines(self._focused(value)))
        elif isinstance(value, list):
            text = "\n".join(self._entries(value, 0))
        elif value is None or value == "Done":
            text = self._say("done", tool=tool)
        else:
            text = value if isinstance(value, str) else self._say("returned", tool=tool, value=self._scalar(value))
        text = text.strip() or self._say("nothing", tool=tool)
        return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"

    def _say(self, key: str, **values: object) -> str:
        return render(key, self.chinese, **values)

    def _row(self, *parts: str) -> str:
        return self._say("comma").join(filter(None, parts))

    def _label(self, key: str) -> str:
        """A field's label: its title in one language, from ``温度 / temperature``, otherwise its name in words."""
        chinese, _, english = str(self.fields.get(key, {}).get("title", "")).partition(" / ")
        return (chinese if self.chinese else english or chinese) or folded_words(key[:60])

    def _scalar(self, value: Any) -> str:
        return self._say("yes" if value else "no") if isinstance(value, bool) else str(value)[:_LONGEST_VALUE]

    def _failure(self, error: Any, tool: str) -> str:
        details = error if isinstance(error, dict) else {"message": error}
        reason = str(details.get("message") or details.get("kind") or self._say("no_reason"))
        reason = reason[:_LONGEST_VALUE].rstrip(" .。")
        if isinstance(hint := details.get("hint"), str) and hint:
            reason += self._say("hint", hint=hint[:_LONGEST_VALUE])
        return self._say("rejected" if details.get("kind") == "rejected" else "failed", tool=tool, reason=reason)

    def _clock(self, value: Mapping[str, Any]) -> str | None:
        """Tell the time when a result is a date, a time and a time zone, in whatever fields, and says nothing else."""
        texts = [str(each) for each in value.values()]
        today = next((found for each in texts if (found := _date(each))), None)
        time, offset = (next(filter(form.fullmatch, texts), "") for form in (_TIME, _OFFSET))
        zone = next((each for each in texts if each in zone_ids() or _FIXED_ZONE.fullmatch(each)), "")
        known = {time, zone, offset, str(today), *_WEEKDAYS}
        if not (today and time and zone) or any(time not in each for each in set(texts) - known):
            return None
        where = zone if offset in zone else self._row(zone, f"UTC{offset}")
        gap = " " if self.chinese and (self.place or "中")[-1].isascii() else ""
        start = self._say("now_in" if self.place else "now", place=self.place, gap=gap)
        text = self._say("clock", start=start, day=self._day(today, "day"), time=time, where=where)
        later = self._later(today)
        return f"{text}{later}" if self.chinese else f"{text} {later}".rstrip()

    def _later(self, today: date) -> str:
        """Which day of the week, and which date, is meant by "tomorrow" and the like."""
        certain = [each for each in self.days if each.are_certain]
        farthest = min(today.toordinal() + _FARTHEST, date.max.toordinal())
        following = map(date.fromordinal, range(today.toordinal(), farthest))
        day = next((each for each in following if any(one.include(each, today) for one in certain)), today)
        if day == today:
            return ""
        ahead = (day - today).days
        named = self._say(f"in_{ahead}_days" if has_template(f"in_{ahead}_days") else "in_days", count=ahead)
        return self._day(day, "later_day", named)

    def _day(self, day: date, form: str, named: str = "") -> str:
        weekday, month = self._say(_WEEKDAYS[day.weekday()]), f"{day:%B}"
        return self._say(form, weekday=weekday, day=day.day, month=day.month, name=month, year=day.year, named=named)

    def _translation(self, value: Mapping[str, Any]) -> str | None:
        """A text beside the language that it is in, by the titles of the fields."""
        strings = {key: each for key, each in value.items() if isinstance(each, str) and each}
        spoken = [key for key in strings if _LANGUAGE.search(self._label(key))]
        targets = [key for key in spoken if not lexicon.SOURCE.search(key)]
        texts = [key for key in strings if key not in spoken]
        if len(targets) != 1 or len(texts) != 1 or len(value) > 4:
            return None
        code, text, title = strings[targets[0]][:40], strings[texts[0]], self._label(texts[0]).capitalize()
        language = language_of(code)
        name = (language.chinese if self.chinese else language.english) if language else code
        return self.headed(self._say("inside", name=title, inside=name), text)

    def headed(self, heading: str, text: str) -> str:
        """A text behind its heading, or below it where it has several lines."""
        colon = self._say("colon")
        return f"{heading}{colon.rstrip()}\n{text}" if "\n" in text else f"{heading}{colon}{text}"

    def _focused(self, value: Mapping[str, Any]) -> Mapping[str, Any]:
        """Keep, of a list of days, those that the question is about; figures beside it belong to today."""
        listed = next((key for key, each in value.items() if _are_days(each)), None)
        if listed is None or not any(each.are_certain for each in self.days):
            return value
        entries = [(_date(next(iter(each.values()))) or date.min, each) for each in value[listed]]
        first, last = entries[0][0], entries[-1][0]
        meant = [{day for day, _ in entries if each.include(day, first)} for each in self.days]
        kept = set().union(*meant)
        nested = {key: each for key, each in value.items() if isinstance(each, dict | list)}
        for key, each in list(nested.items()) if first not in kept else ():
            if isinstance(each, dict) and any(isinstance(one, int | float) for one in each.values()):
                del nested[key]
        note = self._say("covered", first=first, last=last)
        if not all(meant):
            note = self._say("no_such_day", covered=note)
        elif last not in kept or all(len(each.weekdays) < 2 for each in self.days):
            # Only a weekend or a whole week may go on behind the last day that there is.
            note = ""
        return {"": note} | nested | {listed: [each for day, each in entries if day in kept]}

    def _lines(self, value: Mapping[str, Any], depth: int = 0, *, entry: bool = False) -> Iterator[str]:
        """One line of what is simple; what is nested on its own: objects under their names, lists entry by entry."""
        simple = {key: one for key, one in value.items() if not isinstance(one, dict | list) and one not in (None, "")}
        yield from filter(None, [self._named(simple, entry) if depth else self._fields(simple)])
        for key, each in list(value.items())[: 4 * _MOST_ENTRIES]:
            if isinstance(each, dict | list) and depth < _DEEPEST:
                lines = list(self._lines(each, depth + 1) if isinstance(each, dict) else self._entries(each, depth))
                heading = "" if _are_objects(each) else self._label(key)
                if lines and heading:
                    lines[0] = f"{heading[:1].upper()}{heading[1:]}{self._say('colon')}{lines[0]}"
                yield from lines

    def _entries(self, entries: list[Any], depth: int) -> Iterator[str]:
        shown = entries[:_MOST_ENTRIES]
        for each in shown if _are_objects(shown) else ():
            yield from self._lines(each if isinstance(each, dict) else {"": each}, depth + 1, entry=True)
        if shown and not _are_objects(shown):
            yield listed(map(self._scalar, shown), self.chinese)
        if len(entries) > len(shown):
            yield self._say("in_all", count=len(entries))

    def _named(self, simple: Mapping[str, Any], entry: bool) -> str:
        """A thing with its leading texts bare, the first as its name, and the other fields with theirs."""
        bare: dict[str, str] = {}
        for key, each in simple.items():
            if not isinstance(each, str) or (bare and any(map(str.isdigit, each))):
                break
            bare[key] = self._scalar(each)
        name, *more = [*dict.fromkeys(bare.values()), ""]
        rest = self._fields({key: each for key, each in simple.items() if key not in bare})
        if entry and name:
            described = self._row(*more, rest)
            return f"{name}{self._say('colon')}{described}" if described else name
        inside = self._row(*more)
        return self._row(self._say("inside", name=name, inside=inside) if inside else name, rest)

    def _fields(self, simple: Mapping[str, Any]) -> str:
        """Each field with its name, and with its unit where its description is one."""
        shown = []
        for key, value in list(simple.items())[: 3 * _MOST_ENTRIES]:
            described = str(self.fields.get(key, {}).get("description", "")) if isinstance(value, int | float) else ""
            unit = _UNITS.get(described.lower(), f" {described}" if 0 < len(described) <= 4 else "")
            shown.append(f"{self._label(key)} {self._scalar(value)}{unit}".strip())
        return self._row(*shown)
