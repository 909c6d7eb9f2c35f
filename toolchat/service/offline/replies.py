"""Replies: what the offline model says beside results, and example questions that work."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from toolchat.service.offline.planning import Plan, PlannedCall, Planner, planner_of
from toolchat.service.offline.results import Result
from toolchat.service.offline.text import Text, is_chinese
from toolchat.service.offline.tools import SUCH_AS, OfferedTool, Parameter, words_of
from toolchat.service.offline.words import listed, say
from toolchat.tool_calling.callback import ToolCallback

_MOST_LISTED = 12
# The last of them is answered, by the sentence with the group's name.
_GREETING = re.compile(
    r"\W*(?:(?:(?P<greeting>(?:hello|hi|hey|good (?:morning|afternoon|evening)|how are you|there)\b|[你您早]好"
    r"|(?:早上|下午|晚上)好|在吗)|(?P<welcome>(?:thanks?|thank you|that (?:was|is) all)\b|谢谢[你您]?)"
    r"|(?P<bye>(?:good)?bye\b|再见))\W*)+"
)
_HELP = re.compile(
    r"(?:please |can you )?\W*(?:help(?: me)?|(?:what|how) (?:can|do|are) you (?:do|able to do|help)(?: \w+)?"
    r"|who are you|how does (?:this|it) work"
    r"|(?:which|what|list|show)(?: me)?(?: are)?(?: all)?(?: your| the| of your)? tools(?: \w+){0,3}"
    r"|帮助|帮帮我|[你您](?:都|还)?(?:是谁|[能会可]以?(?:做|干)(?:些|点)?什么|有(?:哪些|什么)(?:工具|功能))|(?:有)?(?:哪些|什么)(?:工具|功能))\W*"
)
# What data alone do not answer.
_JUDGED = re.compile(r"[更最][冷热]|比|要带|\b(?:should i|do i need|than|warmer|colder|hotter|better)\b")
_DEFINED = re.compile(r"^\W*what(?:'s| is| are) (?:an? )?[\w-]+\W*$|\bwhy\b|\bmean\b|什么是|是什么意思|为什么")
_SAMPLES = {
    "number": "2",
    "days": "2",
    "date": "2030-01-31",
    "time": "19:30",
    "duration": "in 10 minutes",
    "word": "A1",
}


def proposal(planned: Plan) -> str:
    """Show the calls that wait for the user's yes."""
    calls = "; ".join(f"{each.tool.name} {_written(each.arguments)}".strip() for each in planned.calls)
    return say("proposal", planned.text.chinese, calls=calls)


def _written(value: Any) -> str:
    """Arguments as a user can write them: ``amount: 5, to: EUR``."""
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_written(each)}" for name, each in value.items())
    return value if isinstance(value, str) and len(value.split()) == 1 else json.dumps(value, ensure_ascii=False)


def reply(planned: Plan, planner: Planner) -> str:
    """Say in the user's language what is missing, or what the model can do."""
    chinese, tools = planned.text.chinese, planner.tools
    if planned.is_confirmed is False or not tools:
        return say("not_run" if tools else "no_tools", chinese)
    for each in planned.readings:
        missing = [] if each.leftover or _DEFINED.search(planned.text.command) else each.missing
        if names := [str(one.schema.get("description") or one.name)[:100].rstrip(" .。") for one in missing]:
            examples = _shown(planner, [each.tool], chinese, 1)
            return say("missing", chinese, names=listed(names, chinese), tool=each.tool.name, examples=examples)
    flat = planned.text.flat.strip()
    greeting = _GREETING.fullmatch(flat)
    key = str(greeting.lastgroup) if greeting else "help" if _HELP.fullmatch(flat) else "refusal"
    names = [each.name for each in tools[:_MOST_LISTED]]
    examples = _shown(planner, tools, chinese, 2)
    return say(key, chinese, examples=examples, tools=say("and", chinese).join(names))


def _shown(planner: Planner, tools: Sequence[OfferedTool], chinese: bool, most: int) -> str:
    asked = sorted(tools, key=lambda each: each.changes_something)
    found = (example(planner, each, chinese) for each in asked if not each.metadata.requires_approval)
    # One with quotation marks of its own is hard to read within others.
    examples = sorted(islice(dict.fromkeys(filter(None, found)), most + 1), key=lambda each: '"' in each)[:most]
    return say("examples", chinese, examples=listed(examples, chinese, "or")) if examples else ""


def example(planner: Planner, tool: OfferedTool, chinese: bool) -> str:
    """A question that calls a tool, preferably in the user's language; empty if there is none."""
    declared = tool.metadata.examples
    own = [each for each in declared if is_chinese(each) == chinese]
    questions = (*own, _sentence(tool, chinese), *declared, _sentence(tool, chinese=False))
    return next((each for each in questions if each and planner.calls(each, tool)), "")


def _sentence(tool: OfferedTool, chinese: bool) -> str:
    """The tool's words with a value for each required parameter; empty if there are no words or no value."""
    required = [each for each in tool.parameters if each.required and "default" not in each.schema]
    phrases = list(_phrases(sorted(required, key=lambda each: each.role not in ("number", "choice"))))
    if chinese:
        lead = re.findall("[㐀-鿿]{2,12}", tool.definition.description)[:1]
    else:
        lead = [each for each in words_of(tool.name).split() if each not in ("get", "function", "method", "tool")]
    written = " ".join((*lead, *phrases)) if all(phrases) else ""
    return written[:1].upper() + written[1:] if lead else ""


def _phrases(parameters: Sequence[Parameter]) -> Iterator[str]:
    for each in parameters:
        such_as = SUCH_AS.search(str(each.schema.get("description", "")))
        choice = each.choices[1:2] if each.side == "to" else each.choices[:1]
        value = such_as[1] if such_as else str(choice[0]) if choice else _SAMPLES.get(each.role, "")
        yield f"to {value}" if each.side == "to" and value else value


def starters_of(declared: Sequence[str], own: Iterable[ToolCallback], offered: Iterable[ToolCallback]) -> list[str]:
    """Questions to begin with: the declared ones that call a tool, or what the offline model itself would propose."""
    planner, names = _planner(offered), {each.definition.name for each in own}
    if answered := [each for each in declared if planner.plan(Text.of(each)).calls]:
        return answered
    shown = [each for each in planner.tools if each.name in names]
    proposed = (next(filter(None, (example(planner, each, zh) for each in shown)), "") for zh in (False, True))
    return list(dict.fromkeys(filter(None, proposed)))


def unanswered(questions: Iterable[str], tools: Iterable[ToolCallback]) -> list[str]:
    """The questions that call none of some tools."""
    planner = _planner(tools)
    return [each for each in questions if not planner.plan(Text.of(each)).calls]


def _planner(callbacks: Iterable[ToolCallback]) -> Planner:
    return planner_of([(each.definition, each.metadata) for each in callbacks])


def report(planned: Plan, results: Iterable[tuple[str, PlannedCall | None, str]]) -> str:
    """Tell the results, each with its tool's name and its call if the tool is known, and that they are no judgement."""
    chinese, lines = planned.text.chinese, []
    for name, call, text in results:
        about = (call.place, call.days, call.tool.result_fields) if call else ()
        lines.append(Result(name, chinese, *about).render(text))
    lines += [say("judged", chinese)] if _JUDGED.search(planned.text.command) and not planned.is_confirmed else []
    return "\n".join(lines) or say("refusal", chinese, examples="")
