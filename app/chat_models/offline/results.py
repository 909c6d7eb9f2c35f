"""A tool's result as a sentence or a short list, whatever tool it comes from."""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pydantic_core import from_json

from app.chat_models.offline.labels import label, language_name, measured
from app.chat_models.offline.moments import clock_sentence
from app.messages import ToolResponse

__all__ = ["Reader", "is_failure", "told"]

_LONGEST = 2000
_LONGEST_VALUE = 600
_MOST_ENTRIES = 14
_DEEPEST = 4
_MAIN_TEXTS = ("description", "text", "answer", "result", "message", "content", "summary", "output")
_TRANSLATIONS = ("text", "translation", "translated_text", "translatedText", "dst")
_TARGETS = ("to", "target", "target_language", "targetLanguage", "language")
_HEADS = ("date", "name", "title", "id", "key", "time")
_WHERE = ("region", "country")
_REMINDER = re.compile(r"\s*<reminder>.*?</reminder>", re.DOTALL)
_BARE = ("text", "condition", "description", "summary")


@dataclass(frozen=True, slots=True)
class Reader:
    """Whom a result is told to."""

    chinese: bool
    place: str | None = None
    """The place that the call was about, in the question's words."""
    day: int | None = None
    """The one day that the question is about, counted from today; ``None`` for all."""

    def say(self, chinese: str, english: str) -> str:
        """Choose the language."""
        return chinese if self.chinese else english


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
        clock = clock_sentence(value, reader.chinese, reader.place, reader.day or 0)
        known = clock or _translation(value, reader) or _main_text(value)
        return known or "\n".join(_lines(_focused(value, reader), reader)) or _nothing(tool, reader)
    if isinstance(value, list):
        return "\n".join(_lines({"": value}, reader)) or _nothing(tool, reader)
    if value is None or value == "Done":
        return reader.say(f"{tool} 已完成。", f"{tool} is done.")
    if isinstance(value, str):
        return value if value.strip() else _nothing(tool, reader)
    return reader.say(f"{tool} 的结果：{_scalar(value, reader)}", f"{tool} returned {_scalar(value, reader)}.")


def _failure(error: Any, tool: str, reader: Reader) -> str:
    details = error if isinstance(error, dict) else {"message": error}
    reason = str(details.get("message") or details.get("kind") or reader.say("原因不明", "no reason given"))
    reason = reason[:_LONGEST_VALUE].rstrip(" .。")
    hint = details.get("hint")
    if isinstance(hint, str) and hint:
        reason += reader.say(f"。提示：{hint[:_LONGEST_VALUE]}", f". Hint: {hint[:_LONGEST_VALUE]}")
    return reader.say(f"没有查到结果：{tool} 报告说 {reason}", f"The look-up failed: {tool} reported: {reason}")


def _nothing(tool: str, reader: Reader) -> str:
    return reader.say(f"{tool} 没有返回任何内容。", f"{tool} returned nothing.")


def _translation(value: Mapping[str, Any], reader: Reader) -> str | None:
    text = next((value[key] for key in _TRANSLATIONS if isinstance(value.get(key), str)), None)
    target = next((value[key] for key in _TARGETS if isinstance(value.get(key), str)), None)
    if not text or not target or len(value) > 4:
        return None
    language = language_name(target, reader.chinese)
    heading = reader.say(f"译文（{language}）：", f"Translation ({language}): ")
    return f"{heading.rstrip()}\n{text}" if "\n" in text else f"{heading}{text}"


def _main_text(value: Mapping[str, Any]) -> str | None:
    """The one field that says it all, where there is one."""
    texts = [each for key in _MAIN_TEXTS if isinstance(each := value.get(key), str) and each.strip()]
    others = [each for each in value.values() if isinstance(each, dict | list) and each]
    return texts[0] if texts and not others else None


def _focused(value: Mapping[str, Any], reader: Reader) -> Mapping[str, Any]:
    """Keep, of a list of days, the day that the question is about; what holds now does not belong to a later one."""
    found = next((key for key, each in value.items() if _are_days(each)), None)
    if found is None or reader.day is None:
        return value
    without_counts = {key: each for key, each in value.items() if not key.startswith("days_")}
    if len(value[found]) <= reader.day:
        note = reader.say(
            "没有取得所问那一天的数据，取得的是：", "There is no data for that very day; this is what there is:"
        )
        return {"": note, **without_counts}
    dropped = ("current", "now") if reader.day else ()
    kept = {key: each for key, each in without_counts.items() if key not in dropped}
    return kept | {found: [value[found][reader.day]]}


def _are_days(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(each, dict) and "date" in each for each in value)


def _lines(value: Mapping[str, Any], reader: Reader, depth: int = 0) -> Iterator[str]:
    """One line of what is simple; what is nested on its own: objects under their names, lists entry by entry."""
    simple = _simple(value, reader)
    for key, each in list(value.items())[: 4 * _MOST_ENTRIES]:
        heading = label(key, reader.chinese)
        if not isinstance(each, dict | list):
            yield from filter(None, (simple,))
            simple = ""
        elif depth < _DEEPEST:
            inner = _entries(each, reader, depth) if isinstance(each, list) else _lines(each, reader, depth + 1)
            yield from _headed("" if _holds_objects(each) else heading, list(inner), reader)


def _headed(heading: str, lines: list[str], reader: Reader) -> Iterator[str]:
    if lines and heading:
        yield f"{heading[:1].upper()}{heading[1:]}{reader.say('：', ': ')}{lines[0]}"
        yield from lines[1:]
    else:
        yield from lines


def _holds_objects(value: Any) -> bool:
    return isinstance(value, list) and any(isinstance(each, dict | list) for each in value)


def _entries(entries: list[Any], reader: Reader, depth: int) -> Iterator[str]:
    shown = entries[:_MOST_ENTRIES]
    if not _holds_objects(shown):
        yield from filter(None, (reader.say("、", ", ").join(_scalar(each, reader) for each in shown),))
    else:
        for each in shown:
            yield from _lines(each if isinstance(each, dict) else {"": each}, reader, depth + 1)
    if len(entries) > len(shown):
        yield reader.say(f"……共 {len(entries)} 项", f"... {len(entries)} in all")


def _simple(value: Mapping[str, Any], reader: Reader) -> str:
    """The simple fields in one line: what names the entry first, then what describes it, then the rest."""
    simple = {key: each for key, each in value.items() if not isinstance(each, dict | list) and each not in (None, "")}
    where = [str(simple.pop(key)) for key in _WHERE if "name" in simple and isinstance(simple.get(key), str)]
    head = next((key for key in _HEADS if key in simple), None)
    parts = [str(simple.pop(key))[:_LONGEST_VALUE] for key in _BARE if isinstance(simple.get(key), str) and key != head]
    named = _scalar(simple.pop(head), reader) if head else ""
    if where:
        inside = reader.say("，", ", ").join(each for each in dict.fromkeys(where) if each != named)[:_LONGEST_VALUE]
        parts.insert(0, reader.say(f"{named}（{inside}）", f"{named} ({inside})") if inside else named)
        named = ""
    for key, each in list(simple.items())[: 3 * _MOST_ENTRIES]:
        if key[-2:] != "_f" or f"{key[:-2]}_c" not in value:
            parts.append(measured(key, _scalar(each, reader), reader.chinese))
    body = reader.say("，", ", ").join(parts)
    return f"{named}{reader.say('：', ': ') if body else ''}{body}" if named else body


def _scalar(value: Any, reader: Reader) -> str:
    if isinstance(value, bool):
        return reader.say("是", "yes") if value else reader.say("否", "no")
    return str(value)[:_LONGEST_VALUE]
