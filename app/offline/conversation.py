"""Conversations: a question that goes on with the one before, and the answer to a proposed call."""

import re
from collections.abc import Sequence
from dataclasses import replace

from app.offline.arguments import Arguments
from app.offline.days import Days
from app.offline.literals import Literal, find_literals, unknown_place
from app.offline.planning import Plan, plan, with_literals
from app.offline.reading import Reading, unexplained
from app.offline.replies import proposal
from app.offline.text import Text, is_chinese
from app.offline.tools import OfferedTool

__all__ = ["read_conversation"]

_YES = re.compile(
    r"\s*(?:yes|yes,? please|y|yeah|yep|sure|ok|okay|do it|go ahead|confirm(?:ed)?|是的?|好的?|确认|可以|执行|对|行"
    r"|嗯)[\s.!。]*"
)
_NO = re.compile(r"\s*(?:no|no,? thanks|nope|n|don'?t|cancel|不是?|不要|不用|取消|算了)[\s.!。]*")
_LEAD = re.compile(
    r"(?:[\s,]*(?:and|but|or|ok|okay|thanks|great|then|so|now|(?:what|how) about|那么?|还有|换成|改成|好的?|谢谢"
    r"|再)(?![a-z])[\s,]*)+"
)
_NEW_TEXT = re.compile(r"\s*(?:and|or|(?:what|how) about|那|还有)(?![a-z])")
_TAIL = re.compile(r"(?:[\s,]*(?:呢|怎么样|如何|怎么说|(?:then|too|as well|please|instead)\b))*[\s?!.。]*$")
_ASKS = re.compile(
    r"\b(?:who|why|what|when|where|which|how|is|are|do|does|did|can|could|tell|give|show|write)\b|[谁哪讲]|什么"
    r"|怎么|告诉"
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
            planned = _going_on(plan(text, tools), before, answer)
        before = planned if planned.readings else before
    return planned


def _going_on(planned: Plan, before: Plan, answer: str) -> Plan:
    """The plan with what it takes over from the question before."""
    text = planned.text
    if len(text.raw) > 300 or planned.calls:
        return planned
    lead, tail = _LEAD.match(text.flat), _TAIL.search(text.flat)
    start, end = lead.end() if lead else 0, tail.start() if tail else len(text.flat)
    follows = lead is not None or end < len(text.flat.rstrip("?.!。 "))
    part = text.within([(min(start, end), end)])
    if found := tuple(each for one in before.readings if (each := _continued(one, part, text, follows))):
        has_words = is_chinese(text.flat) or re.search("[a-z]{2}", text.flat[:start])
        return Plan(replace(text, chinese=text.chinese if has_words else before.text.chinese), found)
    return replace(planned, readings=tuple(_completed(each, before, answer, follows) for each in planned.readings))


def _completed(reading: Reading, before: Plan, answer: str, follows: bool) -> Reading:
    """A question of its own that takes the place, or the text, from the conversation: "what time is it there?"."""
    missing, command = [one.role for _, one in reading.arguments.missing], reading.text.command
    if missing == ["text"] and before.calls:
        is_result = re.search(r"\b(?:answer|result|reply)\b|结果|回答", command)
        said = [each.arguments.values for each in before.readings if each.tool is reading.tool and not is_result]
        texts = [values[each.name] for values in said for each in reading.tool.parameters if each.role == "text"] or [
            answer
        ]
        return with_literals(reading, [Literal("quoted", each, 0, 0, each) for each in texts[:1] if each])
    if missing and (follows or re.search(r"\bthere\b|[那当][边里儿地]", command)):
        return with_literals(
            reading, [each for one in before.readings for each in one.literals if each.kind == "place"]
        )
    return reading


def _continued(reading: Reading, part: Text, text: Text, follows: bool) -> Reading | None:
    """The question before with the values of a follow-up; ``None`` if that says anything else."""
    literals = [_aimed(each, reading) for each in find_literals(part)]
    if not literals and follows and (unknown := unknown_place(text)):
        literals = [unknown]
    span = (len(part.raw) - len(part.raw.lstrip()), len(part.raw.rstrip()))
    is_text = _NEW_TEXT.match(text.flat) and span[0] < span[1] and not _ASKS.search(part.flat)
    pieces = [span] if is_text and not any(each.kind in ("language", "quoted") for each in literals) else []
    new = Arguments(reading.tool, part, literals, pieces, defaults=False).fill()
    if not new.values or new.unfit or unexplained(reading.tool, part, new):
        return None
    kinds = {each.kind for each in literals}
    kinds |= {"days", "date"} if kinds & {"days", "date"} else set()
    kept = [replace(each, start=0, end=0) for each in reading.literals if each.kind not in kinds]
    new.missing = [each for each in reading.arguments.missing if each[0] not in new.values]
    new.values = {**reading.arguments.values, **new.values}
    new.others = new.others or ([] if kinds & {each.kind for each in reading.literals} else reading.arguments.others)
    return Reading(reading.tool, part, reading.score, (*kept, *literals), new)


def _aimed(literal: Literal, before: Reading) -> Literal:
    """A value without a preposition replaces the target; "the day after" counts from the days before."""
    if literal.kind == "days" and literal.value.is_relative:
        ahead = max((each.value.last for each in before.literals if each.kind == "days"), default=0) + 1
        return replace(literal, value=Days(ahead, ahead))
    return (
        literal if re.search(r"\b(?:from|to|into)\s*$|[从到]\s*$", literal.before) else replace(literal, before="to ")
    )
