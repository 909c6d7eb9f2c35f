"""The chat model that needs no network and no key."""

import re
from dataclasses import dataclass, field

from pydantic_core import PydanticSerializationError, to_json

from app.chat_models.base import ChatModel, ChatResponse, EmitModelEvent, Prompt, TextDelta
from app.chat_models.offline.answers import details, from_results, without_a_fitting_tool, without_tools
from app.chat_models.offline.choosing import KnownTool, known
from app.chat_models.offline.following import question_in_context
from app.chat_models.offline.planning import Plan, PlannedCall
from app.chat_models.offline.question import Question
from app.chat_models.offline.recalling import recalled
from app.chat_models.offline.steps import steps_of
from app.chat_models.offline.todos import TodoList, Toolbox
from app.messages import AssistantMessage, Message, ToolCall, ToolResponse, ToolResponseMessage, Usage, UserMessage
from app.tool_calling.definition import ToolDefinition

__all__ = ["OfflineChatModel"]

_PIECE = re.compile(r".{1,12}", re.DOTALL)
_MOST_TOOLS = 128
_MOST_REMEMBERED = 512


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

    async def respond(self, prompt: Prompt, emit: EmitModelEvent) -> ChatResponse:
        """Run one turn; see :meth:`ChatModel.respond`. Nothing is raised."""
        message = self._message(prompt)
        if prompt.stream:
            for piece in _PIECE.findall(message.text):
                await emit(TextDelta(piece))
        reason = "tool_calls" if message.tool_calls else "stop"
        return ChatResponse(message, reason, Usage(), self.name)

    def _message(self, prompt: Prompt) -> AssistantMessage:
        asked = [each.text for each in prompt.messages if isinstance(each, UserMessage)] or [""]
        question = question_in_context(asked)
        tools = Toolbox.of(tuple(self._read(tool) for tool in prompt.tools[:_MOST_TOOLS]))
        answer = _answer(question, tools, prompt, asked)
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
            remembered = self._known[id(tool)] = known(tool)
        return remembered


def _answer(question: Question, tools: Toolbox, prompt: Prompt, asked: list[str]) -> tuple[PlannedCall, ...] | str:
    """What to call, else what to say."""
    calls, responses = _of_this_turn(prompt.messages)
    steps = steps_of(question) if tools.writer else []
    if tools.writer and steps:
        todos = TodoList.of(steps, tools.writer, tools.others, calls, responses, chinese=question.chinese)
        return todos.next_calls() or todos.answer(steps, chinese=question.chinese)
    planned = tools.plan(question)
    if prompt.messages and isinstance(prompt.messages[-1], ToolResponseMessage):
        return from_results(responses, calls, question, planned)
    return planned.calls or _without_calls(question, planned, prompt.tools, asked)


def _of_this_turn(messages: tuple[Message, ...]) -> tuple[list[ToolCall], list[ToolResponse]]:
    """The calls made for the last question, and the responses; what earlier questions brought is theirs."""
    start = max((n for n, each in enumerate(messages) if isinstance(each, UserMessage)), default=0)
    calls = [call for each in messages[start:] if isinstance(each, AssistantMessage) for call in each.tool_calls]
    return calls, [
        response for each in messages[start:] if isinstance(each, ToolResponseMessage) for response in each.responses
    ]


def _without_calls(question: Question, planned: Plan, tools: tuple[ToolDefinition, ...], asked: list[str]) -> str:
    if planned.incomplete:
        return "\n".join((*planned.remarks, *details(planned.incomplete, question)))
    return recalled(question, asked) or (without_a_fitting_tool(question, tools) if tools else without_tools(question))


def _call(call_id: str, planned: PlannedCall) -> ToolCall:
    try:
        arguments = to_json(planned.arguments, inf_nan_mode="constants", fallback=str).decode()
    except (PydanticSerializationError, ValueError, RecursionError):
        arguments = "{}"
    return ToolCall(call_id, planned.tool.name, arguments)
