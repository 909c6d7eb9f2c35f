"""Conversations: a question that only changes values of the one before, and the answer to a proposed call."""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from toolchat.service.offline.arguments import find_choices
from toolchat.service.offline.literals import ROW, Literal, find_literals
from toolchat.service.offline.planning import Plan, plan
from toolchat.service.offline.replies import proposal
from toolchat.service.offline.text import Text, masked
from toolchat.service.offline.tools import OfferedTool

_YES = re.compile(r"\s*(?:y|yes(?:,? please)?|yeah|sure|ok|okay|do it|go ahead|是的?|好的?|确认|可以|执行)[\s.!。]*")
_NO = re.compile(r"\s*(?:(?:no|nope|n|don['’]?t|cancel|stop|never ?mind|forget)\b|[不别]|取消|算了)")
_KINDS = {"name": "place", "zone": "place", "day": "days"}
# What stands around the values of a follow-up; those have become zeros.
_AROUND = re.compile(
    r"(?:[\s,?!.。\0\"“”]|\b(?:and|but|or|ok|okay|thanks|then|so|now|what about|how about|too|please|instead|in"
    r"|to|into|at|for|on|of|the)\b|那么?|还有|换成|改成|好的?|谢谢|再|呢|怎么样|如何|[和与])+"
)


def read_conversation(asked: Sequence[tuple[str, str]], tools: Sequence[OfferedTool]) -> Plan:
    """Plan the last of the user's messages; each comes with the answer before it."""
    before = planned = Plan(Text.of(""))
    for answer, written in asked:
        text = Text.of(written)
        found, is_yes = plan(text, tools), _YES.fullmatch(text.flat) is not None
        is_reply = is_yes or (_NO.match(text.flat) and not found.calls)
        if is_reply and planned.needs_yes and planned.calls and answer == proposal(planned):
            planned = replace(planned, is_confirmed=is_yes)
            continue
        planned = found
        if not planned.calls and (changed := _changed(before, text)):
            found = plan(changed, tools)
            # Nobody has ordered the call with the other values.
            readings = tuple(replace(each, is_order=False) for each in found.readings)
            planned = replace(found, readings=readings) if found.calls else planned
        before = planned if any(not each.leftover for each in planned.readings) else before
    return planned


def _changed(before: Plan, text: Text) -> Text | None:
    """The question before with the values of a follow-up instead of its own; ``None`` if that says anything else."""
    values = _values_of(text, before) if len(text.raw) <= 300 else []
    if not values or not _AROUND.fullmatch(masked(text.flat, [(each.start, each.end) for each in values])):
        return None
    raw, own = before.text.raw, _values_of(before.text, before)
    by_kind = {each.kind: [one for one in own if one.kind == each.kind] for each in values}
    # From the end to the start, so that a change moves no other; what the question has not follows it.
    for kind, old in sorted(by_kind.items(), key=lambda each: each[1][0].start if each[1] else len(raw), reverse=True):
        if not all(ROW.fullmatch(before.text.command, one.end, other.start) for one, other in pairwise(old)):
            return None
        new = [each for each in values if each.kind == kind]
        start, end = (old[0].start, old[-1].end) if old else (len(raw), len(raw))
        raw = f"{raw[:start]}{'' if old else ' '}{text.raw[new[0].start : new[-1].end]}{raw[end:]}"
    return replace(Text.of(raw), chinese=text.chinese)


def _values_of(text: Text, asked: Plan) -> list[Literal]:
    """The values in a text, those of the enumerations of the tools that were asked included."""
    parameters = [one for each in asked.readings for one in each.arguments.tool.parameters if one.role == "choice"]
    choices = [choice for each in parameters for choice in find_choices(each, text)]
    taken = masked(text.flat, [(each.start, each.end) for each in choices])
    others = [each for each in find_literals(text) if taken[each.start] != "\0"]
    return choices + [replace(each, kind=_KINDS.get(each.kind, each.kind)) for each in others]
