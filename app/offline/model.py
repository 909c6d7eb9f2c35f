"""The offline chat model, which needs neither network nor key."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from pydantic_core import PydanticSerializationError, to_json

from app.offline.conversation import read_conversation
from app.offline.planning import PlannedCall
from app.offline.replies import proposal, reply, report
from app.offline.text import LONGEST
from app.offline.tools import OfferedTool
from toolchat.messages import AssistantMessage, Message, ToolCall, ToolResponseMessage, Usage, UserMessage
from toolchat.models.base import ChatModel, ChatResponse, EmitModelEvent, Prompt, TextDelta

__all__ = ["OfflineChatModel"]

_MOST_TOOLS, _MOST_CACHED, _MOST_BEFORE = 128, 32, 8


class _Toolbox:
    """The offered tools, and the plans for the conversations of the moment."""

    def __init__(self, prompt: Prompt) -> None:
        chosen = [each for each in prompt.tools if each.name == prompt.options.tool_choice]
        # Keeps the definitions alive, so that their ids stand for no other objects.
        self.definitions = prompt.tools
        offered = chosen or prompt.tools[:_MOST_TOOLS]
        self.tools = [OfferedTool(each, prompt.metadata.get(each.name)) for each in offered]
        self.plan = lru_cache(_MOST_CACHED)(lambda asked: read_conversation(asked, self.tools))


@dataclass(slots=True)
class OfflineChatModel(ChatModel):
    """Finds the tool that a question names, fills it with what the question holds word for word, and tells the result.

    It knows no tool by name, invents no value, and is deterministic. A tool that may change something runs only if the
    question orders it in so many words, or after a yes. No input makes it raise.
    """

    provider = "offline"
    name = "offline"
    _toolboxes: dict[tuple[object, ...], _Toolbox] = field(default_factory=dict, init=False, repr=False)

    async def respond(self, prompt: Prompt, emit: EmitModelEvent) -> ChatResponse:
        """Run one turn; see :meth:`ChatModel.respond`. Nothing is raised."""
        answer = self._answer(self._toolbox(prompt), prompt)
        if isinstance(answer, str):
            for piece in re.findall(r"(?s).{1,12}", answer) if prompt.stream else ():
                await emit(TextDelta(piece))
            return ChatResponse(AssistantMessage(answer), "stop", Usage(), self.name)
        earlier = sum(len(each.tool_calls) for each in prompt.messages if isinstance(each, AssistantMessage))
        calls = tuple(_call(f"call_{earlier + n}", each) for n, each in enumerate(answer, 1))
        return ChatResponse(AssistantMessage(tool_calls=calls), "tool_calls", Usage(), self.name)

    def _toolbox(self, prompt: Prompt) -> _Toolbox:
        """The tools with their words; cached, since the same objects are offered in every request."""
        key = (*map(id, prompt.tools), prompt.options.tool_choice)
        if key not in self._toolboxes:
            if len(self._toolboxes) >= _MOST_CACHED:
                self._toolboxes.clear()
            self._toolboxes[key] = _Toolbox(prompt)
        return self._toolboxes[key]

    def _answer(self, toolbox: _Toolbox, prompt: Prompt) -> Sequence[PlannedCall] | str:
        """The next calls, or the answer; only the results of the running turn count."""
        start = max((n for n, each in enumerate(prompt.messages) if isinstance(each, UserMessage)), default=0)
        turn = prompt.messages[start:]
        planned = toolbox.plan(tuple(_asked(prompt.messages)))
        made = [call for each in turn if isinstance(each, AssistantMessage) for call in each.tool_calls]
        if not made and planned.calls and planned.needs_yes:
            return proposal(planned)
        one_by_one = prompt.options.parallel_tool_calls is False
        if planned.calls and toolbox.tools and (not made or (one_by_one and len(made) < len(planned.calls))):
            return planned.calls[len(made) :][: 1 if one_by_one else None]
        if not made:
            return reply(planned, toolbox.tools)
        texts = {one.id: one.text for each in turn if isinstance(each, ToolResponseMessage) for one in each.responses}
        known = {n: each for n, each in enumerate(planned.calls) if made[n : n + 1] and made[n].name == each.tool.name}
        tools = {each.name: PlannedCall(each, {}) for each in toolbox.tools}
        shown = [(n, each) for n, each in enumerate(made) if each.id in texts]
        return report(planned, [(each.name, known.get(n) or tools.get(each.name), texts[each.id]) for n, each in shown])


def _asked(messages: Sequence[Message]) -> list[tuple[str, str]]:
    """The user's messages, each with the answer before it."""
    asked, answer = [("", "")], ""
    for each in messages:
        if isinstance(each, AssistantMessage):
            answer = each.text[:LONGEST] or answer
        elif isinstance(each, UserMessage):
            asked.append((answer, each.text))
    return asked[-_MOST_BEFORE:]


def _call(call_id: str, planned: PlannedCall) -> ToolCall:
    try:
        arguments = to_json(planned.arguments, inf_nan_mode="constants", fallback=str).decode()
    except (PydanticSerializationError, ValueError, RecursionError):
        arguments = "{}"
    return ToolCall(call_id, planned.tool.name, arguments)
