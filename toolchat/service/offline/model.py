"""The offline chat model, which needs neither network nor key; a follow-up changes values of the question before."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, zip_longest

from pydantic_core import to_json

from toolchat.messages import AssistantMessage, Message, ToolCall, ToolResponseMessage, Usage, UserMessage
from toolchat.models.base import ChatModel, ChatResponse, EmitModelEvent, Prompt, TextDelta
from toolchat.service.offline.arguments import find_choices
from toolchat.service.offline.literals import ROW, Literal, find_literals
from toolchat.service.offline.planning import Plan, PlannedCall, plan
from toolchat.service.offline.replies import proposal, reply, report
from toolchat.service.offline.text import LONGEST, Text, masked
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


_MOST_TOOLS, _MOST_BEFORE = 128, 8


@dataclass(slots=True)
class OfflineChatModel(ChatModel):
    """Finds the tool that a question names, fills it with what the question holds word for word, and tells the result.

    It knows no tool by name, invents no value, and is deterministic. A tool that may change something runs only if the
    question orders it in so many words, or after a yes. No input makes it raise.
    """

    provider = "offline"
    name = "offline"

    async def respond(self, prompt: Prompt, emit: EmitModelEvent) -> ChatResponse:
        """Run one turn; see :meth:`ChatModel.respond`. Nothing is raised."""
        answer = _answer(prompt)
        if isinstance(answer, str):
            for piece in re.findall(r"(?s).{1,12}", answer) if prompt.stream else ():
                await emit(TextDelta(piece))
            return ChatResponse(AssistantMessage(answer), "stop", Usage(), self.name)
        earlier = sum(len(each.tool_calls) for each in prompt.messages if isinstance(each, AssistantMessage))
        numbered = enumerate(answer, 1 + earlier)
        calls = tuple(ToolCall(f"call_{n}", each.tool.name, to_json(each.arguments).decode()) for n, each in numbered)
        return ChatResponse(AssistantMessage(tool_calls=calls), "tool_calls", Usage(), self.name)


def _answer(prompt: Prompt) -> Sequence[PlannedCall] | str:
    """The next calls, or the answer; only the results of the running turn count."""
    choice, offered = prompt.options.tool_choice, prompt.tools[:_MOST_TOOLS]
    chosen = [each for each in prompt.tools if each.name == choice] or (() if choice == "none" else offered)
    tools = [OfferedTool(each, prompt.metadata.get(each.name)) for each in chosen]
    planned = read_conversation(_asked(prompt.messages), tools)
    start = max((n for n, each in enumerate(prompt.messages) if isinstance(each, UserMessage)), default=0)
    turn = prompt.messages[start:]
    made = [call for each in turn if isinstance(each, AssistantMessage) for call in each.tool_calls]
    if not made and planned.calls and planned.needs_yes:
        return proposal(planned)
    one_by_one = prompt.options.parallel_tool_calls is False
    if planned.calls and tools and (not made or (one_by_one and len(made) < len(planned.calls))):
        return planned.calls[len(made) :][: 1 if one_by_one else None]
    if not made:
        return reply(planned, tools)
    texts = {one.id: one.text for each in turn if isinstance(each, ToolResponseMessage) for one in each.responses}
    by_name = {each.name: PlannedCall(each, {}) for each in tools}
    pairs = zip_longest(made, planned.calls[: len(made)])
    known = [(call, each if each and each.tool.name == call.name else by_name.get(call.name)) for call, each in pairs]
    return report(planned, [(call.name, each, texts[call.id]) for call, each in known if call.id in texts])


def _asked(messages: Sequence[Message]) -> list[tuple[str, str]]:
    """The user's messages, each with the answer before it."""
    asked, answer = [("", "")], ""
    for each in messages:
        if isinstance(each, AssistantMessage):
            answer = each.text[:LONGEST] or answer
        elif isinstance(each, UserMessage):
            asked.append((answer, each.text))
    return asked[-_MOST_BEFORE:]
