"""Replies: what the offline model says without a call, and around the results of its calls."""

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from toolchat.service.offline.examples import examples_of
from toolchat.service.offline.planning import Plan, PlannedCall
from toolchat.service.offline.reading import Reading
from toolchat.service.offline.results import Result
from toolchat.service.offline.sentences import listed, say
from toolchat.service.offline.tools import OfferedTool

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
