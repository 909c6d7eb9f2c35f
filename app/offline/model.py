"""The chat model that needs no network and no key."""

import re
from dataclasses import dataclass, field

from pydantic_core import PydanticSerializationError, to_json

from app.chat_models.base import ChatModel, ChatResponse, EmitModelEvent, Prompt, TextDelta
from app.messages import AssistantMessage, Message, ToolCall, ToolResponse, ToolResponseMessage, Usage, UserMessage
from app.offline.following import question_in_context, steps_of
from app.offline.planning import PlannedCall
from app.offline.talking import details, from_results, without_calls
from app.offline.todos import Toolbox, proceed, still_open
from app.tool_calling.definition import ToolDefinition

__all__ = ["OfflineChatModel"]

_PIECE = re.compile(r".{1,12}", re.DOTALL)
_MOST_TOOLS, _MOST_REMEMBERED = 128, 64


@dataclass(slots=True)
class OfflineChatModel(ChatModel):
    """Picks from the tools that it is offered by the words of the question, and answers from their results.

    It knows no tool by name and nothing of the world but names of places, languages and numbers: without a result it
    says that it cannot know. The same conversation always gets the same answer. It makes one round of calls per
    question, or as many as a plan of several steps takes, and nothing that it is given makes it raise.
    """

    provider = "offline"
    name = "offline"
    # Each holds on to its definitions, so that no other object can have their ids.
    _toolboxes: dict[tuple[int, ...], Toolbox] = field(default_factory=dict, init=False, repr=False)

    async def respond(self, prompt: Prompt, emit: EmitModelEvent) -> ChatResponse:
        """Run one turn; see :meth:`ChatModel.respond`. Nothing is raised."""
        answer = self._answer(self._toolbox(prompt.tools[:_MOST_TOOLS]), prompt.messages)
        if isinstance(answer, str):
            for piece in _PIECE.findall(answer) if prompt.stream else ():
                await emit(TextDelta(piece))
            return ChatResponse(AssistantMessage(answer), "stop", Usage(), self.name)
        earlier = sum(len(each.tool_calls) for each in prompt.messages if isinstance(each, AssistantMessage))
        calls = tuple(_call(f"call_{earlier + n}", each) for n, each in enumerate(answer, 1))
        return ChatResponse(AssistantMessage(tool_calls=calls), "tool_calls", Usage(), self.name)

    def _toolbox(self, tools: tuple[ToolDefinition, ...]) -> Toolbox:
        """What the tools are about; remembered, since the same objects are offered again and again."""
        key = tuple(map(id, tools))
        if key not in self._toolboxes:
            if len(self._toolboxes) >= _MOST_REMEMBERED:
                self._toolboxes.clear()
            self._toolboxes[key] = Toolbox.of(tools)
        return self._toolboxes[key]

    def _answer(self, tools: Toolbox, messages: tuple[Message, ...]) -> tuple[PlannedCall, ...] | str:
        """What to call, else what to say."""
        start = max((n for n, each in enumerate(messages) if isinstance(each, UserMessage)), default=0)
        asked = [each.text for each in messages if isinstance(each, UserMessage)] or [""]
        said = [each.text for each in messages[:start] if isinstance(each, AssistantMessage) and each.text]
        question = question_in_context(
            asked, said[-1] if said else "", lambda concept: any(each.is_about(concept) for each in tools.others)
        )
        calls, responses = _since(messages[start:])
        steps = steps_of(question) if tools.writer else []
        if steps:
            return proceed(tools, question, steps, calls, responses)
        planned = tools.plan(question)
        if isinstance(messages[-1] if messages else None, ToolResponseMessage):
            told = from_results(responses, calls, question, planned, tools.all)
            return "\n".join((told, *([] if tools.all else still_open(calls, question.chinese))))
        if planned.incomplete and not planned.calls:
            return "\n".join((*planned.remarks, *details(planned.incomplete, question)))
        return planned.calls or without_calls(question, tools.others, asked)


def _since(messages: tuple[Message, ...]) -> tuple[list[ToolCall], list[ToolResponse]]:
    """The calls made for the last question, and the responses; what earlier questions brought is theirs."""
    calls = [call for each in messages if isinstance(each, AssistantMessage) for call in each.tool_calls]
    responses = [one for each in messages if isinstance(each, ToolResponseMessage) for one in each.responses]
    return calls, responses


def _call(call_id: str, planned: PlannedCall) -> ToolCall:
    try:
        arguments = to_json(planned.arguments, inf_nan_mode="constants", fallback=str).decode()
    except (PydanticSerializationError, ValueError, RecursionError):
        arguments = "{}"
    return ToolCall(call_id, planned.tool.name, arguments)
