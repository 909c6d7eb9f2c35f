"""The offline chat model, which needs neither network nor key."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from pydantic_core import to_json

from toolchat.messages import AssistantMessage, Message, ToolCall, ToolResponseMessage, Usage, UserMessage
from toolchat.models.base import ChatModel, ChatResponse, EmitModelEvent, Prompt, TextDelta
from toolchat.service.offline.conversation import read_conversation
from toolchat.service.offline.planning import PlannedCall
from toolchat.service.offline.replies import proposal, reply, report
from toolchat.service.offline.text import LONGEST
from toolchat.service.offline.tools import OfferedTool

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
    chosen = [each for each in prompt.tools if each.name == prompt.options.tool_choice]
    tools = [OfferedTool(each, prompt.metadata.get(each.name)) for each in chosen or prompt.tools[:_MOST_TOOLS]]
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
