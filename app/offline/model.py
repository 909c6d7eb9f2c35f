"""The chat model that needs no network and no key."""

import re
from dataclasses import dataclass, field

from pydantic_core import PydanticSerializationError, to_json

from app.chat_models.base import ChatModel, ChatResponse, EmitModelEvent, Prompt, TextDelta
from app.messages import AssistantMessage, Message, ToolCall, ToolResponse, ToolResponseMessage, Usage, UserMessage
from app.offline.choosing import KnownTool
from app.offline.following import question_in_context
from app.offline.planning import Plan, PlannedCall
from app.offline.question import Question
from app.offline.talking import details, from_results, without_calls
from app.offline.todos import TodoList, Toolbox, steps_of
from app.tool_calling.definition import ToolDefinition

__all__ = ["OfflineChatModel"]

_PIECE = re.compile(r".{1,12}", re.DOTALL)
_MOST_TOOLS = 128
_MOST_REMEMBERED = 512
_MOST_PLANS = 64


@dataclass(slots=True)
class OfflineChatModel(ChatModel):
    """Picks from the tools that it is offered by the words of the question, and answers from their results.

    It knows no tool by name and nothing of the world but names of places, languages and numbers: without a result it
    says that it cannot know. The same conversation always gets the same answer. It makes one round of calls per
    question, or as many as a plan of several steps takes, and nothing that it is given makes it raise.
    """

    provider = "offline"
    name = "offline"
    _known: dict[int, KnownTool] = field(default_factory=dict, init=False, repr=False)
    _plans: dict[tuple[object, ...], tuple[Toolbox, Plan]] = field(default_factory=dict, init=False, repr=False)

    async def respond(self, prompt: Prompt, emit: EmitModelEvent) -> ChatResponse:
        """Run one turn; see :meth:`ChatModel.respond`. Nothing is raised."""
        message = self._message(prompt)
        if prompt.stream:
            for piece in _PIECE.findall(message.text):
                await emit(TextDelta(piece))
        reason = "tool_calls" if message.tool_calls else "stop"
        return ChatResponse(message, reason, Usage(), self.name)

    def _message(self, prompt: Prompt) -> AssistantMessage:
        tools = Toolbox.of(tuple(self._read(tool) for tool in prompt.tools[:_MOST_TOOLS]))
        answer = self._answer(tools, prompt.messages)
        if isinstance(answer, str):
            return AssistantMessage(answer)
        earlier = sum(len(each.tool_calls) for each in prompt.messages if isinstance(each, AssistantMessage))
        return AssistantMessage(
            tool_calls=tuple(_call(f"call_{earlier + n}", each) for n, each in enumerate(answer, 1))
        )

    def _read(self, tool: ToolDefinition) -> KnownTool:
        """What a tool is about; remembered, since the same objects are offered again and again."""
        remembered = self._known.get(id(tool))
        if remembered is None or remembered.definition is not tool:
            if len(self._known) >= _MOST_REMEMBERED:
                self._known.clear()
            remembered = self._known[id(tool)] = KnownTool(tool)
        return remembered

    def _answer(self, tools: Toolbox, messages: tuple[Message, ...]) -> tuple[PlannedCall, ...] | str:
        """What to call, else what to say."""
        asked = [each.text for each in messages if isinstance(each, UserMessage)] or [""]
        question = question_in_context(
            asked, _answer_before(messages), lambda concept: any(each.is_about(concept) for each in tools.others)
        )
        calls, responses = _of_this_turn(messages)
        steps = steps_of(question) if tools.writer else []
        if steps:
            return TodoList(tools, question, steps, calls).proceed(responses)
        planned = self._plan(question, tools)
        if messages and isinstance(messages[-1], ToolResponseMessage):
            return from_results(responses, calls, question, planned, (*tools.others, *filter(None, [tools.reader])))
        if planned.incomplete and not planned.calls:
            return "\n".join((*planned.remarks, *details(planned.incomplete, question)))
        return planned.calls or without_calls(question, tools.others, asked)

    def _plan(self, question: Question, tools: Toolbox) -> Plan:
        """Plan once for both turns of a question: the one that calls and the one that tells the results."""
        # The entry holds on to its tools, so that no other object can have their ids.
        key = (question, *map(id, tools.others), id(tools.reader))
        if key not in self._plans:
            if len(self._plans) >= _MOST_PLANS:
                self._plans.clear()
            self._plans[key] = tools, tools.plan(question)
        return self._plans[key][1]


def _answer_before(messages: tuple[Message, ...]) -> str:
    """What the model said last before the user's last question."""
    start = max((n for n, each in enumerate(messages) if isinstance(each, UserMessage)), default=0)
    said = [each.text for each in messages[:start] if isinstance(each, AssistantMessage) and each.text]
    return said[-1] if said else ""


def _of_this_turn(messages: tuple[Message, ...]) -> tuple[list[ToolCall], list[ToolResponse]]:
    """The calls made for the last question, and the responses; what earlier questions brought is theirs."""
    start = max((n for n, each in enumerate(messages) if isinstance(each, UserMessage)), default=0)
    calls = [call for each in messages[start:] if isinstance(each, AssistantMessage) for call in each.tool_calls]
    return calls, [
        response for each in messages[start:] if isinstance(each, ToolResponseMessage) for response in each.responses
    ]


def _call(call_id: str, planned: PlannedCall) -> ToolCall:
    try:
        arguments = to_json(planned.arguments, inf_nan_mode="constants", fallback=str).decode()
    except (PydanticSerializationError, ValueError, RecursionError):
        arguments = "{}"
    return ToolCall(call_id, planned.tool.definition.name, arguments)
