"""Conversations: a question that goes on with the one before, and the answer to a proposed call."""

import re
from collections.abc import Sequence
from dataclasses import replace

from app.offline.arguments import Arguments
from app.offline.literals import Literal, find_literals
from app.offline.planning import Plan, plan
from app.offline.reading import Reading, leftover
from app.offline.replies import proposal
from app.offline.text import Text, is_chinese
from app.offline.tools import OfferedTool

__all__ = ["read_conversation"]

_YES = re.compile(
    r"\s*(?:yes|yes,? please|y|yeah|sure|ok|okay|do it|go ahead|confirm|是的?|好的?|确认|可以|执行|对|行)[\s.!。]*"
)
_NO = re.compile(r"\s*(?:no|no,? thanks|n|don'?t|cancel|不是?|不要|不用|取消|算了)[\s.!。]*")
_AROUND = re.compile(
    r"(?:[\s,?!.。]|\b(?:and|but|or|ok|okay|thanks|then|so|now|what about|how about|too|please|instead)\b|那么?|还有"
    r"|换成|改成|好的?|谢谢|再|呢|怎么样|如何)+"
)


def read_conversation(asked: Sequence[tuple[str, str]], tools: Sequence[OfferedTool]) -> Plan:
    """Plan the last of the user's messages.

    Args:
        asked: The messages, oldest first, each with the answer before it.
        tools: The offered tools.
    """
    before = planned = Plan(Text.of(""))
    for answer, written in asked:
        text = Text.of(written)
        answers_proposal = planned.needs_yes and planned.calls and answer == proposal(planned)
        if answers_proposal and (_YES.fullmatch(text.flat) or _NO.fullmatch(text.flat)):
            planned = replace(planned, is_confirmed=_YES.fullmatch(text.flat) is not None)
        else:
            planned = _going_on(plan(text, tools), before)
        before = planned if any(not each.leftover for each in planned.readings) else before
    return planned


def _going_on(planned: Plan, before: Plan) -> Plan:
    """The plan of the question before with the values of this one, if it has nothing but values."""
    text = planned.text
    if planned.calls or len(text.raw) > 300:
        return planned
    found = tuple(each for one in before.readings if (each := _continued(one, text)))
    if not found:
        return planned
    has_words = is_chinese(text.flat) or re.match(r"\s*[a-z]{2}", text.flat)
    return Plan(replace(text, chinese=text.chinese if has_words else before.text.chinese), found)


def _continued(reading: Reading, text: Text) -> Reading | None:
    """The question before with the values of a follow-up; ``None`` if that says anything else."""
    literals = [_aimed(each) for each in find_literals(text)]
    around = [each.span() for each in _AROUND.finditer(text.flat)]
    new = Arguments(reading.tool, text, literals, defaults=False).fill()
    if not new.values or new.unfit or leftover(reading.tool, text, new.used + around, literals):
        return None
    kinds = {each.kind for each in literals}
    kept = [replace(each, start=0, end=0) for each in reading.literals if each.kind not in kinds]
    new.missing = [each for each in reading.arguments.missing if each.name not in new.values]
    new.values = {**reading.arguments.values, **new.values}
    new.others = new.others or ([] if kinds & {each.kind for each in reading.literals} else reading.arguments.others)
    return Reading(reading.tool, text, reading.score, (*kept, *literals), new)


def _aimed(literal: Literal) -> Literal:
    """A value without a preposition replaces the target."""
    is_aimed = re.search(r"\b(?:from|to|into)\s*$|[从到]\s*$", literal.before)
    return literal if is_aimed else replace(literal, before="to ")
