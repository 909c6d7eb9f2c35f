"""Results: a tool's result as a sentence or a short list."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

from pydantic_core import from_json

from toolchat.service.offline.tools import words_of
from toolchat.service.offline.words import say

_LONGEST_RESULT, _LONGEST_VALUE, _DEEPEST = 2000, 600, 5
_REMINDER = re.compile(r"\s*<reminder>.*?</reminder>", re.DOTALL)
_CLOCK = frozenset(("date", "time", "time_zone", "zone", "weekday", "utc_offset"))
# A toolchat that is reached as an MCP server sends its fields behind the sentence.
_CLOCK_TEXT = re.compile(
    r"The current time zone is (?P<zone>\S+) and the current time is (?P<date>\S+) (?P<time>\S+) .*"
    r"UTC(?P<utc_offset>[+-][\d:]+)\)"
)
# Kinds of errors that are no breakdown.
_FAILURES = ("rejected", "not-found", "no-such-place", "outcome-unknown")


@dataclass(frozen=True, slots=True)
class Result:
    """Renders the result of one call.

    Args:
        place: The place of the call, as the question writes it.
        days: The single days that the question names: the words for each, and how far away it is.
        fields: The schemas of the result's fields, at any depth, by name.
    """

    tool: str
    chinese: bool
    place: str = ""
    days: Sequence[tuple[str, int]] = ()
    fields: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def render(self, text: str) -> str:
        """A result, or its failure, in at most about 2,000 characters."""
        value = _read(text)
        if isinstance(value, dict) and value.get("error"):
            shown = self._failure(value["error"])
        elif isinstance(value, dict | list):
            shown = self._clock(value) or _description(value) or "\n".join(self._lines(value))
        elif value is None or value == "Done":
            shown = self._say("done", tool=self.tool)
        elif isinstance(value, str):
            clock = _CLOCK_TEXT.match(value)
            shown = (self._clock(clock.groupdict()) if clock else "") or self._titled(value)
        else:
            shown = self._say("returned", tool=self.tool, value=self._scalar(value))
        shown = shown.strip() or self._say("nothing", tool=self.tool)
        return shown if len(shown) <= _LONGEST_RESULT else f"{shown[:_LONGEST_RESULT]}…"

    def _say(self, key: str, **values: object) -> str:
        return say(key, self.chinese, **values)

    def _scalar(self, value: Any) -> str:
        return self._say("yes" if value else "no") if isinstance(value, bool) else str(value)[:_LONGEST_VALUE]

    def _label(self, key: str) -> str:
        """A field's title in one language, from ``温度 / temperature``, otherwise its name in words; an id as it is."""
        chinese, _, english = str(self.fields.get(key, {}).get("title", "")).partition(" / ")
        title = chinese if self.chinese else english or chinese
        return title or (words_of(key[:60]) if key.isidentifier() else key[:60])

    def _titled(self, text: str) -> str:
        """A text that names values by the English titles of their fields, with Chinese ones if that is asked."""
        pairs = (str(each.get("title", "")).partition(" / ") for each in self.fields.values())
        titles = {english: chinese for chinese, _, english in pairs if english and self.chinese}
        known = "|".join(map(re.escape, sorted(titles, key=len, reverse=True)))
        form = rf"(?m)(^|, )({known or '(?!)'})(?=:? )"
        named, found = re.subn(form, lambda each: each[1] + titles[each[2]], text)
        return named.replace(", ", "，").replace(": ", "：") if found else text

    def _failure(self, error: Any) -> str:
        details = error if isinstance(error, dict) else {"message": error}
        kind = str(details.get("kind") or "?")
        # A hint is an instruction to a model.
        reason = str(details.get("message") or "")[:_LONGEST_VALUE].rstrip(" .。") or kind
        return self._say(kind if kind in _FAILURES else "failed", tool=self.tool, reason=reason)

    def _clock(self, value: Any) -> str:
        """The sentence for a date, a time and a time zone, with the date of "tomorrow" if that is asked."""
        if not isinstance(value, dict) or not {"date", "time"} <= value.keys() <= _CLOCK:
            return ""
        zone = value.get("time_zone", value.get("zone"))
        try:
            today = date.fromisoformat(value["date"])
            later = [(phrase, today + timedelta(count)) for phrase, count in self.days if count]
        except (ValueError, TypeError, OverflowError):
            return ""
        place = self._say("in", place=self.place) if self.place else ""
        offset = f"{self._say('comma')}UTC{value['utc_offset']}" if value.get("utc_offset") else ""
        now = self._say("clock", place=place, day=self._day(today), time=value["time"], zone=f"{zone}{offset}")
        now += "".join(self._say("later", phrase=phrase.capitalize(), day=self._day(day)) for phrase, day in later)
        return now[:1].upper() + now[1:]

    def _day(self, day: date) -> str:
        return self._say("day", day=day, weekday="一二三四五六日"[day.weekday()])

    def _lines(self, value: Mapping[str, Any] | list[Any], depth: int = 0) -> Iterator[str]:
        """One line of what is simple, each with its name and unit; then what is nested, behind its name."""
        shown = list(value.items() if isinstance(value, Mapping) else (("", each) for each in value))
        simple = [self._field(key, each) for key, each in shown if not isinstance(each, dict | list)]
        yield from filter(None, [self._say("comma").join(filter(None, simple))])
        nested = [(key, each) for key, each in shown if isinstance(each, dict | list)]
        for key, each in nested if depth < _DEEPEST else ():
            label = f"{self._label(key)}{self._say('colon')}" if key else ""
            yield from (f"{'' if n else label}{line}" for n, line in enumerate(self._lines(each, depth + 1)))

    def _field(self, key: str, value: Any) -> str:
        described = str(self.fields.get(key, {}).get("description", "")) if isinstance(value, int | float) else ""
        unit = f" {described}" if 0 < len(described) <= 4 else ""
        return f"{self._label(key)} {self._scalar(value)}{unit}".strip() if value not in (None, "") else ""


def _read(text: str) -> Any:
    """A result as JSON if it is; reminders to the model stand beside the result and are no part of it."""
    for each in (text, _REMINDER.sub("", text)):
        with suppress(ValueError):
            return from_json(each)
    return _REMINDER.sub("", text)


def _description(value: Any) -> str:
    """The description in a result, if it says all of it apart from an id."""
    text = str(value.get("description") or "") if isinstance(value, dict) else ""
    return text if text and all(str(each) in text for key, each in value.items() if key != "id") else ""
