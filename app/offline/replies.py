"""Replies: what the offline model says without a call, and around the results of its calls."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from app.offline.planning import Plan, PlannedCall, plan
from app.offline.reading import Reading
from app.offline.results import Result
from app.offline.sentences import listed, say
from app.offline.text import Text, is_chinese
from app.offline.tools import SOMEBODY, SUCH_AS, OfferedTool, Parameter

__all__ = ["proposal", "reply", "report"]

_SAMPLES = """
number=2 days=3 date=2030-01-31 time=19:30 date_time=PT10M zone=Asia/Tokyo place=Paris
language=fr currency=USD id=A1 boolean=yes text=hello pattern=USD
"""
_USUAL = dict(each.split("=") for each in _SAMPLES.split())
# What data alone do not answer.
_JUDGED = re.compile(r"[更最][冷热]|比|要带|\b(?:should i|do i need|than|warmer|colder|hotter|better)\b")
_DEFINED = re.compile(r"^\W*what(?:'s| is| are) an? [\w-]+\W*$|什么是|是什么意思")
_MOST_UNCLEAR = 3
_TARGETS = {"place": "Rome", "currency": "EUR", "pattern": "EUR"}


def _written(value: Any) -> str:
    """Arguments as a user can write them: ``amount: 5, to: EUR``."""
    if isinstance(value, PlannedCall):
        return f"{value.tool.name} {_written(value.arguments)}".strip()
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_written(each)}" for name, each in value.items())
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def proposal(planned: Plan) -> str:
    """Show the calls that wait for the user's yes."""
    return say("proposal", planned.text.chinese, calls="; ".join(map(_written, planned.calls)))


def reply(planned: Plan, tools: Sequence[OfferedTool]) -> str:
    """Say in the user's language what is missing, or what the model can do instead."""
    chinese = planned.text.chinese
    if planned.is_confirmed is False or not tools:
        return say("not_run" if tools else "no_tools", chinese)
    if lacking := [_lacking(each, chinese) for each in planned.readings if _is_meant(each)]:
        return "\n".join(dict.fromkeys(lacking))
    examples = _shown(islice(_examples(tools, chinese), 2), chinese)
    unclear = next((each for each in planned.readings if _is_nearly_read(each)), None)
    if unclear is None:
        return say("refusal", chinese, examples=examples)
    words = listed(_unclear_words(unclear), chinese)
    return say("unclear", chinese, words=words, tool=unclear.tool.name, examples=examples)


def _shown(examples: Iterable[str], chinese: bool) -> str:
    return say("examples", chinese, examples=shown) if (shown := listed(examples, chinese, "or")) else ""


def _is_meant(reading: Reading) -> bool:
    """Whether it helps to say what a call lacks; a stranger's question is not about this tool."""
    given = reading.arguments
    is_ordered = reading.is_certain or (given.values and not given.is_loose) or not reading.tool.changes_something
    is_one_fault = not (given.missing and given.unfit)
    is_ordered = is_ordered and not _DEFINED.search(reading.text.command)
    return bool(is_ordered) and is_one_fault and not reading.is_complete and not reading.leftover


def _is_nearly_read(reading: Reading) -> bool:
    """Whether a few words are all that keeps the tool from being called."""
    given = reading.arguments
    is_only_reason = not (given.missing or given.unfit or _DEFINED.search(reading.text.command))
    return is_only_reason and 0 < len(_unclear_words(reading)) <= _MOST_UNCLEAR


def _unclear_words(reading: Reading) -> list[str]:
    """The words that nothing explains; Chinese characters in a row are one."""
    runs = [""]
    for each in reading.leftover:
        is_next = not each.isascii() and runs[-1] + each in reading.text.flat
        runs[-1:] = [runs[-1] + each] if is_next else [runs[-1], each]
    return [each for each in runs if each]


def _lacking(reading: Reading, chinese: bool) -> str:
    """Which required arguments are missing, or which values the tool does not take."""
    tool, given = reading.tool, reading.arguments
    if given.unfit:
        return say("unfit", chinese, tool=tool.name, names=listed(given.unfit, chinese))
    sample = {**given.values, **{each.name: _sample(each) for each in given.missing}}
    own = [each for each in tool.metadata.examples if is_chinese(each) == chinese and plan(Text.of(each), [tool]).calls]
    examples = [] if None in sample.values() else [_written(PlannedCall(tool, sample))]
    examples = own[:1] if own and not given.values else examples
    names = listed((_described(each, chinese) for each in given.missing), chinese)
    return say("missing", chinese, tool=tool.name, names=names, examples=_shown(examples, chinese))


def _described(parameter: Parameter, chinese: bool) -> str:
    described = str(parameter.schema.get("description", ""))[:100].rstrip(" .。")
    return say("inside", chinese, name=parameter.name, inside=described) if described else parameter.name


def _sample(parameter: Parameter) -> Any:
    """A value that fits, to be shown; ``None`` if none is certain to."""
    described = SUCH_AS.search(str(parameter.schema.get("description", "")))
    somebody = "Ann" if parameter.role == "other" and SOMEBODY.search(parameter.about) else None
    target = _TARGETS.get(parameter.role) if parameter.side == "target" else None
    spare = {"number": parameter.schema.get("minimum"), "pattern": "A1"}.get(parameter.role)
    # "From km to mile": neighbours are rather of one kind than the first and the last.
    choice = parameter.choices[1:2] if parameter.side == "target" else parameter.choices[:1]
    samples = *choice, target, described and described[1], somebody, _USUAL.get(parameter.role), spare
    return next((each for each in samples if each is not None and (parameter.choices or parameter.fit(each))), None)


def _examples(tools: Sequence[OfferedTool], chinese: bool) -> Iterator[str]:
    """Questions that work, of the last tools first: the user's own stand behind the built-in ones."""
    shown: set[str] = set()
    for tool in (each for each in reversed(tools) if not each.metadata.requires_approval):
        sample = {each.name: _sample(each) for each in tool.parameters if each.required}
        written = [] if None in sample.values() else [_written(PlannedCall(tool, sample))]
        own = [each for each in tool.metadata.examples if is_chinese(each) == chinese]
        for question in (*own, *written, *tool.metadata.examples):
            if question not in shown and any(each.tool is tool for each in plan(Text.of(question), tools).calls):
                shown.add(question)
                yield question
                break


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
