"""The offline chat model, which needs neither network nor key; a follow-up changes values of the question before."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from pydantic_core import to_json

from toolchat.messages import AssistantMessage, Message, ToolCall, ToolResponseMessage, Usage, UserMessage
from toolchat.models.base import ChatModel, ChatResponse, EmitModelEvent, Prompt, TextDelta
from toolchat.service.offline.planning import Plan, PlannedCall, Planner, planner_of
from toolchat.service.offline.replies import proposal, reply, report
from toolchat.service.offline.text import LONGEST, Text

_YES = re.compile(r"\s*(?:y|yes(?:,? please)?|yeah|sure|ok|okay|do it|go ahead|是的?|好的?|确认|可以|执行)[\s.!。]*")
_CONFIRMED = re.compile(r"[,，.。;；]\s*(?:yes|confirmed|确认)[\s.!。！]*$")
_NO = re.compile(r"\s*(?:(?:no|nope|n|don['’]?t|cancel|stop|never ?mind|forget)\b|[不别]|取消|算了)")
_MOST_TOOLS, _MOST_BEFORE, _LONGEST_YES = 128, 8, 20


class Conversation:
    """The user's messages, each with the answer before it; those before the last one are read only if it needs them."""

    def __init__(self, asked: Sequence[tuple[str, str]], planner: Planner) -> None:
        self._asked, self._planner = asked, planner
        self._plans: dict[int, Plan] = {}

    def plan(self, index: int) -> Plan:
        """Plan one of the messages."""
        if index not in self._plans:
            self._plans[index] = self._planned(index)
        return self._plans[index]

    def _planned(self, index: int) -> Plan:
        answer, written = self._asked[index]
        # Where nothing can be answered, the question itself may end in a yes.
        asked = _CONFIRMED.sub("", written[-_LONGEST_YES:])
        text = Text.of(written[:-_LONGEST_YES] + asked)
        found, is_yes = self._planner.plan(text), _YES.fullmatch(text.flat) is not None
        if found.calls and asked != written[-_LONGEST_YES:]:
            return replace(found, is_confirmed=True)
        if found.calls or not index:
            return found
        if is_yes or _NO.match(text.flat):
            before = self.plan(index - 1)
            if before.needs_yes and before.calls and answer == proposal(before):
                return replace(before, is_confirmed=is_yes)
        for before in map(self.plan, range(index - 1, -1, -1)):
            if before.readings:
                return self._planner.changed(before, text) or found
        return found


@dataclass(slots=True)
class OfflineChatModel(ChatModel):
    """Finds the tool that a question names, fills it with what the question holds word for word, and tells the result.

    It knows no tool by name, invents no value, and is deterministic. A tool that may change something runs only after a
    yes. No input makes it raise.
    """

    provider = "offline"
    name = "offline"

    async def respond(self, prompt: Prompt, emit: EmitModelEvent) -> ChatResponse:
        """Run one turn; see :meth:`ChatModel.respond`. Nothing is raised."""
        answer = self._answer(prompt)
        if isinstance(answer, str):
            for piece in re.findall(r"(?s).{1,12}", answer) if prompt.stream else ():
                await emit(TextDelta(piece))
            return ChatResponse(AssistantMessage(answer), "stop", Usage(), self.name)
        earlier = sum(len(each.tool_calls) for each in prompt.messages if isinstance(each, AssistantMessage))
        numbered = enumerate(answer, 1 + earlier)
        calls = tuple(ToolCall(f"call_{n}", each.tool.name, to_json(each.arguments).decode()) for n, each in numbered)
        return ChatResponse(AssistantMessage(tool_calls=calls), "tool_calls", Usage(), self.name)

    def _answer(self, prompt: Prompt) -> Sequence[PlannedCall] | str:
        """The next calls, or the answer; only the results of the running turn count."""
        planner = _planner(prompt)
        asked = _asked(prompt.messages)
        planned = Conversation(asked, planner).plan(len(asked) - 1)
        start = max((n for n, each in enumerate(prompt.messages) if isinstance(each, UserMessage)), default=0)
        turn = prompt.messages[start:]
        made = [call for each in turn if isinstance(each, AssistantMessage) for call in each.tool_calls]
        if not made and planned.calls and planned.needs_yes:
            return proposal(planned)
        one_by_one = prompt.options.parallel_tool_calls is False
        if planned.calls and planner.tools and (not made or (one_by_one and len(made) < len(planned.calls))):
            return planned.calls[len(made) :][: 1 if one_by_one else None]
        if not made:
            return reply(planned, planner)
        texts = {one.id: one.text for each in turn if isinstance(each, ToolResponseMessage) for one in each.responses}
        by_name = {each.name: PlannedCall(each, {}) for each in planner.tools}
        pairs = zip_longest(made, planned.calls[: len(made)])
        known = [
            (call, each if each and each.tool.name == call.name else by_name.get(call.name)) for call, each in pairs
        ]
        return report(planned, [(call.name, each, texts[call.id]) for call, each in known if call.id in texts])


def _planner(prompt: Prompt) -> Planner:
    choice, offered = prompt.options.tool_choice, prompt.tools[:_MOST_TOOLS]
    chosen = [each for each in prompt.tools if each.name == choice] or (() if choice == "none" else offered)
    return planner_of([(each, prompt.metadata.get(each.name)) for each in chosen])


def _asked(messages: Sequence[Message]) -> list[tuple[str, str]]:
    """The last of the user's messages, each with the answer before it."""
    asked, answer = [("", "")], ""
    for each in messages:
        if isinstance(each, AssistantMessage):
            answer = each.text[:LONGEST] or answer
        elif isinstance(each, UserMessage):
            asked.append((answer, each.text))
    return asked[-_MOST_BEFORE:]
