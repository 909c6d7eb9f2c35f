"""Replies: the offline model's sentences, its example questions, and a tool's result as a sentence or a short list."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, timedelta
from itertools import islice
from typing import Any

from pydantic_core import from_json

from toolchat.service.offline.planning import Plan, PlannedCall, plan
from toolchat.service.offline.reading import Reading
from toolchat.service.offline.text import Text, is_chinese
from toolchat.service.offline.tools import SOMEBODY, SUCH_AS, OfferedTool, Parameter, words_of

# Key, Chinese, English; a tilde is a space at an end.
_SENTENCE_TABLE = """
refusal | 我是离线模型，只会使用这里的工具，这个我帮不上忙{examples}。 |\
 I am the offline model and can only use the tools that are here, so I cannot help with this{examples}.
examples | ；你可以问：{examples} | ; you could ask, for example, {examples}
no_tools | 我是离线模型，这次没有可用的工具，所以无法回答；可以换用以 /chat-tool-function 结尾的地址，\
或者设置 DASHSCOPE_API_KEY 或 OPENAI_API_KEY 后重新启动，由真正的大模型回答。 |\
 I am the offline model and was given no tools, so I cannot answer this; use an address that ends in\
 /chat-tool-function, or set DASHSCOPE_API_KEY or OPENAI_API_KEY and restart, so that a real model answers.
missing | 要用 {tool} 回答，还缺少{names}{examples}。 | To answer with {tool} I still need {names}{examples}.
proposal | 这会改动数据，请先确认：{calls}。要执行请回答“是”。 |\
 This may change something, so please confirm: {calls}. Answer "yes" to run it.
not_run | 好的，什么都没有执行。 | All right, nothing was run.
judged | 比较和判断要由你自己或真正的大模型来做。 | Comparing and judging this is left to you or to a real model.
quote | “{text}” | "{text}"
done | {tool} 已完成。 | {tool} is done.
returned | {tool} 的结果是 {value}。 | {tool} returned {value}.
nothing | {tool} 没有返回任何内容。 | {tool} returned nothing.
failed | {tool} 没有成功：{reason}。 | {tool} failed: {reason}.
not-found | 没有找到：{reason}。 | Nothing was found: {reason}.
no-such-place | 没有找到：{reason}。 | Nothing was found: {reason}.
rejected | {tool} 被拒绝，没有执行：{reason}。 | {tool} was rejected and was not run: {reason}.
outcome-unknown | {tool} 运行到一半，服务就中断了：它可能已经生效，也可能没有。为避免重复，没有再次运行。 |\
 The service stopped while {tool} was running, so it may or may not have taken effect. It was not run again.
clock | {place}现在是 {day} {time}（时区 {zone}）。 | {place}it is {time} on {day} ({zone}).
in | {place} | In {place}~
day | {day.year}年{day.month}月{day.day}日 星期{weekday} | {day:%A}, {day.day} {day:%B} {day.year}
later | {phrase}是{day}。 |~{phrase} is {day}.
colon | ： | :~
comma | ， | ,~
or | 或者 |~or~
and | 、 | ,~
yes | 是 | yes
no | 否 | no
"""
_SENTENCE_ROWS = (row.split(" |") for row in _SENTENCE_TABLE.strip().splitlines())
_SENTENCES = {key: (chinese.strip(), english.strip().replace("~", " ")) for key, chinese, english in _SENTENCE_ROWS}


def say(key: str, chinese: bool, **values: object) -> str:
    """A sentence in one of the two languages."""
    return _SENTENCES[key][not chinese].format(**values)


def listed(items: Iterable[object], chinese: bool, last: str = "and") -> str:
    """Items in a row, each in quotes."""
    return say(last, chinese).join(say("quote", chinese, text=each) for each in items)


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


# A phrase for a parameter of each role, in Chinese and English.
_PHRASE_TABLE = """
number | 2 | 2
date | 2030-01-31 | on 2030-01-31
time | 19:30 | at 19:30
date_time | 10分钟后 | in 10 minutes
zone | 东京 | in Tokyo
place | 巴黎 | in Paris
place source | 从巴黎 | from Paris
place target | 到罗马 | to Rome
language | 法语 | in French
language target | 成法语 | into French
currency | USD | USD
currency target | 到EUR | to EUR
id | A1 | A1
name | 王伟 | Ann
name target | 王伟 | to Ann
text | ：你好 | : hello
choice target | 到 {} | to {}
choice | {} | {}
"""
_PHRASE_ROWS = (row.split(" | ") for row in _PHRASE_TABLE.strip().splitlines())
_TECHNICAL = ("get", "function", "method", "tool")
_PHRASES = {key: (chinese, english) for key, chinese, english in _PHRASE_ROWS}


def examples_of(shown: Sequence[OfferedTool], tools: Sequence[OfferedTool], chinese: bool, most: int) -> list[str]:
    """Questions that call the shown tools, those of the last ones first: the user's own follow the built-in ones."""
    asked = sorted(shown, key=lambda each: (each.changes_something, -shown.index(each)))
    found = (_example(each, tools, chinese) for each in asked if not each.metadata.requires_approval)
    return list(islice(dict.fromkeys(filter(None, found)), most))


def _example(tool: OfferedTool, tools: Sequence[OfferedTool], chinese: bool) -> str:
    """A question that works, preferably in the user's language; empty if there is none."""
    declared = tool.metadata.examples
    own = [each for each in declared if is_chinese(each) == chinese]
    questions = (*own, _sentence(tool, chinese), *declared, _sentence(tool, chinese=False))
    return next((each for each in questions if any(one.tool is tool for one in plan(Text.of(each), tools).calls)), "")


def _sentence(tool: OfferedTool, chinese: bool) -> str:
    """The tool's words with a phrase for each required parameter; empty if there are no words or no phrase."""
    required = [each for each in tool.parameters if each.required and "default" not in each.schema]
    required.sort(key=lambda each: (each.role == "text", each.role != "number"))
    phrases = [_phrase(each, chinese) for each in required]
    if chinese:
        lead = re.findall("[㐀-鿿]{2,12}", tool.definition.description)[:1]
    else:
        lead = [each for each in words_of(tool.name).split() if each not in _TECHNICAL]
    if not lead or not all(phrases):
        return ""
    written = re.sub(" (?=[:：])", "", " ".join((*lead, *phrases)))
    return written[0].upper() + written[1:]


def _phrase(parameter: Parameter, chinese: bool) -> str:
    example, role = SUCH_AS.search(str(parameter.schema.get("description", ""))), parameter.role
    if example and not parameter.side and role in ("id", "other", "word", "pattern"):
        return example[1]
    if role == "other" and SOMEBODY.search(parameter.about):
        role = "name"
    if role == "pattern":
        role = "id" if parameter.fit("A1") else "currency"
    phrases = _PHRASES.get(f"{role} {parameter.side}") or _PHRASES.get(role, ("", ""))
    choice = parameter.choices[1:2] if parameter.side == "target" else parameter.choices[:1]
    return phrases[not chinese].format(*choice) if choice or role != "choice" else ""


# What data alone do not answer.
_JUDGED = re.compile(r"[更最][冷热]|比|要带|\b(?:should i|do i need|than|warmer|colder|hotter|better)\b")
_DEFINED = re.compile(r"^\W*what(?:'s| is| are) an? [\w-]+\W*$|\bwhy\b|什么是|是什么意思|为什么")


def _written(value: Any) -> str:
    """Arguments as a user can write them: ``amount: 5, to: EUR``."""
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_written(each)}" for name, each in value.items())
    return value if isinstance(value, str) and len(value.split()) == 1 else json.dumps(value, ensure_ascii=False)


def proposal(planned: Plan) -> str:
    """Show the calls that wait for the user's yes."""
    calls = "; ".join(f"{each.tool.name} {_written(each.arguments)}".strip() for each in planned.calls)
    return say("proposal", planned.text.chinese, calls=calls)


def reply(planned: Plan, tools: Sequence[OfferedTool]) -> str:
    """Say in the user's language what is missing, or what the model can do instead."""
    chinese = planned.text.chinese
    if planned.is_confirmed is False or not tools:
        return say("not_run" if tools else "no_tools", chinese)
    for each in planned.readings:
        if lacking := _lacking(each):
            examples = _shown(examples_of([each.arguments.tool], tools, chinese, 1), chinese)
            return say(
                "missing", chinese, names=listed(lacking, chinese), tool=each.arguments.tool.name, examples=examples
            )
    return say("refusal", chinese, examples=_shown(examples_of(tools, tools, chinese, 2), chinese))


def _shown(examples: Sequence[str], chinese: bool) -> str:
    return say("examples", chinese, examples=listed(examples, chinese, "or")) if examples else ""


def _lacking(reading: Reading) -> list[str]:
    """The parameters that are missing, if nothing else keeps the tool from being called."""
    given = reading.arguments
    is_guess = sum((given.tool.changes_something, given.text.is_question, given.is_loose)) > 1
    is_meant = not is_guess and (given.values or reading.is_order or not given.tool.changes_something)
    is_blurred = given.unfit or reading.leftover or (given.text.has_payload and len(given.missing) > 1)
    missing = given.missing if is_meant and not (is_blurred or _DEFINED.search(given.text.command)) else []
    return [str(each.schema.get("description") or each.name)[:100].rstrip(" .。") for each in missing]


def report(planned: Plan, results: Iterable[tuple[str, PlannedCall | None, str]]) -> str:
    """Tell the results, each with its tool's name and its call if the tool is known, and that they are no judgement."""
    chinese, lines = planned.text.chinese, []
    for name, call, text in results:
        about = (call.place, call.days, call.tool.result_fields) if call else ()
        lines.append(Result(name, chinese, *about).render(text))
    lines += [say("judged", chinese)] if _JUDGED.search(planned.text.command) and not planned.is_confirmed else []
    return "\n".join(lines) or say("refusal", chinese, examples="")
