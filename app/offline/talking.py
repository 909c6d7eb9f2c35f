"""What the offline model says: from results, about what is missing, and where it calls no tool."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from app.folding import folded
from app.messages import ToolCall, ToolResponse
from app.offline import lexicon
from app.offline.choosing import KnownTool
from app.offline.numbers import horizon
from app.offline.parameters import Parameter
from app.offline.phrases import is_said, listed, say
from app.offline.places import places
from app.offline.planning import Incomplete, Plan, plan
from app.offline.question import Question, question_of
from app.offline.telling import Reader, told
from app.offline.words import concepts_in, words_of
from app.tool_calling.events import parsed_arguments

__all__ = ["details", "from_results", "recalled", "without_calls"]

_MOST_DETAILS = 8
_MOST_EXAMPLES = 3
_MOST_QUOTED = 10
_LONGEST = 300
_HAN = re.compile(r"[㐀-鿿]+")
# Example questions for tools that ask for these roles, in Chinese and in English.
_EXAMPLES: tuple[tuple[set[str], str, str], ...] = (
    ({"time_zone"}, "北京现在几点？", "What time is it in London?"),
    ({"place", "days"}, "上海明天天气怎么样？", "What is the weather in Paris tomorrow?"),
    ({"text", "language"}, "把“早上好”翻译成日语", 'Translate "good morning" into French'),
    ({"place"}, "杭州今天天气怎么样？", "What is the weather in Paris?"),
)
# A value that shows how an argument is given, by role.
_SAMPLES = {
    "time_zone": "Asia/Shanghai", "place": "Paris", "date": "2030-01-31", "time_of_day": "07:30",
    "date_time": "2030-01-31T07:30", "duration": "PT10M", "email": "a@example.com", "url": "https://example.com",
    "language": "en", "days": 3, "number": 3, "boolean": "true", "id": "123", "text": "hello",
}  # fmt: skip


def from_results(
    responses: Sequence[ToolResponse],
    calls: Sequence[ToolCall],
    question: Question,
    planned: Plan,
    tools: Sequence[KnownTool],
) -> str:
    """Tell what the tools answered, what is still missing, and what the plan left out."""
    question = question.with_payloads_meant()
    wanted = horizon(question.command)
    by_id = {call.id: call for call in calls}
    schemas = {each.definition.name: each.definition.output_schema for each in tools}
    parts = []
    for each in responses:
        place = _place(by_id.get(each.id), question)
        day = wanted.offset if wanted else None
        parts.append(told(each, Reader.of(question.chinese, place, day, schemas.get(each.name, {}))))
    told_of = {each.name for each in responses}
    parts += details((each for each in planned.incomplete if each.tool.definition.name not in told_of), question)
    return "\n".join((*parts, *planned.remarks)) or say("no_tools", question.chinese)


def details(incomplete: Iterable[Incomplete], question: Question) -> list[str]:
    """Name the details that fitting tools still need, each once."""
    return list(dict.fromkeys(_asking_for(each, question.chinese) for each in incomplete))


def without_calls(question: Question, tools: tuple[KnownTool, ...], asked: Sequence[str]) -> str:
    """Answer from what the user said; else say what this model is, what it cannot know, and what it can be asked."""
    known = recalled(question, asked)
    if known is not None:
        return known
    is_small_talk = lexicon.SMALL_TALK.fullmatch(question.flat) and question.flat.strip()
    if not tools and not is_small_talk:
        return _without_tools(question)
    examples = list(islice(_examples(tools, question.chinese), _MOST_EXAMPLES))
    shown = [say("try", question.chinese), *(f"- {each}" for each in examples)] if examples else []
    if is_small_talk or lexicon.WHAT_IT_CAN.search(question.flat):
        greeting = say("welcome" if lexicon.THANKS.search(question.flat) else "hello", question.chinese)
        first = say("what_i_am", question.chinese, greeting=greeting)
        return "\n".join((first, *(shown or [_without_tools(question)])))
    return "\n".join((say("none_fits", question.chinese), *shown))


def recalled(question: Question, asked: Sequence[str]) -> str | None:
    """Answer from what the user said, in his own words; ``None`` when the question is about something else."""
    chinese, command = question.chinese, question.command
    name = next((name for text in reversed(asked) if (name := _name(text[: 4 * _LONGEST]))), None)
    if lexicon.WHAT_WAS_ASKED.search(command):
        shown = [_shortened(each) for each in asked[:-1] if each.strip()]
        return _quoted(shown[-_MOST_QUOTED if lexicon.ALL_THAT_WAS_ASKED.search(command) else -1 :], chinese)
    if lexicon.WHO_AM_I.search(command):
        return say("your_name", chinese, name=name) if name else say("nameless", chinese)
    if name and lexicon.SMALL_TALK.fullmatch(f" {lexicon.MY_NAME.sub('', question.flat)}"):
        introduced = lexicon.MY_NAME.search(question.flat)
        return say("hello_name", chinese, name=name) if introduced else None
    return None


def _without_tools(question: Question) -> str:
    keys = (f"cannot_{concept}" for concept, _ in concepts_in(question.command))
    about = next(filter(is_said, keys), None)
    if about is None:
        return say("no_tools", question.chinese)
    return say("cannot", question.chinese, what=say(about, question.chinese))


def _examples(tools: tuple[KnownTool, ...], chinese: bool) -> Iterator[str]:
    """Questions that lead to a call of one tool each, as a trial shows; tools of an unforeseen kind come first."""
    kinds: dict[int, list[str]] = {}
    for tool in tools:
        kind = next((n for n, (roles, *_) in enumerate(_EXAMPLES) if roles <= set(tool.roles)), -1)
        _, in_chinese, in_english = _EXAMPLES[kind]
        text = _own_example(tool, chinese) if kind < 0 else in_chinese if chinese else in_english
        calls = plan(question_of(text), tools).calls
        if "…" not in text and [each.tool for each in calls] == [tool]:
            kinds.setdefault(kind, []).append(text)
    for kind in sorted(kinds):
        shortest_first = sorted(dict.fromkeys(kinds[kind]), key=lambda text: text.count(": "))
        yield from shortest_first if kind < 0 else shortest_first[:1]


def _own_example(tool: KnownTool, chinese: bool) -> str:
    """Ask for a tool by its description, or by its name in words, with the arguments that it needs by their names."""
    described = _HAN.search(tool.definition.description) if chinese else None
    first = described[0] if described else words_of(tool.definition.name)
    pairs = [f"{each.name}: {_sample(each)}" for each in tool.parameters if each.required]
    return say("comma", chinese).join((first, *pairs))


def _sample(parameter: Parameter) -> Any:
    """A value for an argument: what the schema gives, else one that shows the form."""
    if parameter.choices:
        return parameter.choices[0]
    if parameter.type == "array":
        return listed([str(_sample(parameter.items))] * 1, chinese=False)
    given = parameter.schema.get("examples")
    low = parameter.number("minimum")
    if isinstance(given, list) and given:
        return given[0]
    return f"{max(low, 3):g}" if low is not None else _SAMPLES.get(parameter.role, "…")


def _asking_for(incomplete: Incomplete, chinese: bool) -> str:
    name = incomplete.tool.definition.name
    unknown = next((each.value.name for each in incomplete.places if each.value.zone is None), None)
    wants_a_zone = any(each.role == "time_zone" for each in incomplete.missing)
    note = say("unknown_zone", chinese, name=unknown) if unknown and wants_a_zone else ""
    shown = [_detail(each, chinese) for each in incomplete.missing[:_MOST_DETAILS]]
    pairs = ", ".join(f"{each.name}: {_sample(each)}" for each in incomplete.missing[:_MOST_DETAILS])
    return say("missing", chinese, note=note, tool=name, details=listed(shown, chinese), form=f"{name} {pairs}")


def _detail(parameter: Parameter, chinese: bool) -> str:
    given = " ".join(parameter.description.split())[:80]
    name = f"{parameter.name}: {given}" if given else parameter.name
    key = f"detail_{parameter.role}"
    if not is_said(key):
        return name
    return f"{say(key, chinese)}（{name}）" if chinese else f"{say(key, chinese)} ({name})"


def _quoted(before: list[str], chinese: bool) -> str:
    if not before:
        return say("nothing_asked", chinese)
    if chinese:
        return "你刚才问的是：" + "".join(f"“{each}”" for each in before)
    return "You asked: " + ", ".join(f'"{each}"' for each in before)


def _name(text: str) -> str | None:
    found = lexicon.MY_NAME.search(folded(text))
    return text[slice(*found.span("name"))].strip() if found else None


def _shortened(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _place(call: ToolCall | None, question: Question) -> str | None:
    """The place of a call in the question's own words."""
    arguments = parsed_arguments(call) if call else {}
    values = [each for each in arguments.values() if isinstance(each, str)] if isinstance(arguments, dict) else []
    named = (each.value for each in places(question) if each.value.english is not None)
    return next((each.name for each in named if each.zone in values or each.name in values), None)
