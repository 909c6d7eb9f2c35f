"""Replies: what the offline model says without a call, and around the results of its calls."""

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from app.offline.examples import examples_of
from app.offline.planning import Plan, PlannedCall
from app.offline.reading import Reading
from app.offline.results import Result
from app.offline.sentences import listed, say
from app.offline.tools import OfferedTool

__all__ = ["proposal", "reply", "report"]

# What data alone do not answer.
_JUDGED = re.compile(r"[更最][冷热]|比|要带|\b(?:should i|do i need|than|warmer|colder|hotter|better)\b")
_DEFINED = re.compile(r"^\W*what(?:'s| is| are) an? [\w-]+\W*$|什么是|是什么意思")
_MOST_UNCLEAR = 3


def _written(value: Any) -> str:
    """Arguments as a user can write them: ``amount: 5, to: EUR``."""
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_written(each)}" for name, each in value.items())
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def proposal(planned: Plan) -> str:
    """Show the calls that wait for the user's yes."""
    calls = "; ".join(f"{each.tool.name} {_written(each.arguments)}".strip() for each in planned.calls)
    return say("proposal", planned.text.chinese, calls=calls)


def reply(planned: Plan, tools: Sequence[OfferedTool]) -> str:
    """Say in the user's language what is missing, or what the model can do instead."""
    chinese = planned.text.chinese
    if planned.is_confirmed is False or not tools:
        return say("not_run" if tools else "no_tools", chinese)
    faults = [fault for each in planned.readings if (fault := _fault(each, tools, chinese))]
    if faults:
        return "\n".join(dict.fromkeys(faults))
    return say("refusal", chinese, examples=_shown(examples_of(tools, tools, chinese, 2), chinese))


def _shown(examples: Sequence[str], chinese: bool) -> str:
    return say("examples", chinese, examples=listed(examples, chinese, "or")) if examples else ""


def _fault(reading: Reading, tools: Sequence[OfferedTool], chinese: bool) -> str:
    """The one fault that keeps a tool from being called; empty if there are several: the question is about another."""
    tool, given = reading.tool, reading.arguments
    is_meant = reading.is_certain or (given.values and not given.is_loose) or not tool.changes_something
    unclear = [*given.unfit, *reading.leftover]
    if not is_meant or len(unclear) > _MOST_UNCLEAR or _DEFINED.search(reading.text.command):
        return ""
    if bool(unclear) == bool(given.missing):
        return ""
    shown = examples_of(tools, tools, chinese, 2) if unclear else examples_of([tool], tools, chinese, 1)
    names = listed(unclear or (each.described for each in given.missing), chinese)
    key = "unclear" if unclear else "missing"
    return say(key, chinese, names=names, tool=tool.name, examples=_shown(shown, chinese))


def report(planned: Plan, results: Iterable[tuple[str, PlannedCall | None, str]]) -> str:
    """Tell the results of the calls, and that they are no judgement.

    Args:
        planned: The plan that led to the calls.
        results: Of each call the tool's name, the call if its tool is known, and the result.
    """
    chinese, lines = planned.text.chinese, []
    for name, call, text in results:
        about = (call.place, call.days, call.tool.result_fields) if call else ()
        lines.append(Result(name, chinese, *about).render(text))
    lines += [say("judged", chinese)] if _JUDGED.search(planned.text.command) and not planned.is_confirmed else []
    return "\n".join(lines) or say("refusal", chinese, examples="")
