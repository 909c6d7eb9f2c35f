"""The chat model that needs no network and no key."""

import re
from collections.abc import AsyncGenerator, Iterable
from dataclasses import dataclass, field

from pydantic_core import PydanticSerializationError, to_json

from app.chat_models.base import ChatModel, ChatResponse, ModelEvent, Prompt, TextDelta
from app.chat_models.offline.answers import asking_for, without_a_fitting_tool, without_tools
from app.chat_models.offline.choosing import KnownTool, known
from app.chat_models.offline.numbers import horizon
from app.chat_models.offline.planning import Plan, PlannedCall, plan
from app.chat_models.offline.question import Question, question_of
from app.chat_models.offline.results import Reader, told
from app.chat_models.offline.texts import places
from app.messages import AssistantMessage, Message, ToolCall, ToolResponse, ToolResponseMessage, Usage, UserMessage
from app.tool_calling.definition import ToolDefinition
from app.tool_calling.events import parsed_arguments

__all__ = ["OfflineChatModel"]

_PIECE = re.compile(r".{1,12}", re.DOTALL)
_MOST_TOOLS = 128
_MOST_REMEMBERED = 512


@dataclass(slots=True)
class OfflineChatModel(ChatModel):
    """Picks from the tools that it is offered by the words of the question, and answers from their results.

    It knows no tool by name and nothing of the world but names of places, languages and numbers: without a result it
    says that it cannot know. The same conversation always gets the same answer. It makes one round of calls per
    question, and nothing that it is given makes it raise.
    """

    provider = "offline"
    name = "offline"
    _known: dict[int, KnownTool] = field(default_factory=dict, init=False, repr=False)

    async def respond(self, prompt: Prompt) -> AsyncGenerator[ModelEvent, None]:
        """Run one turn; see :meth:`ChatModel.respond`. Nothing is raised."""
        message = self._message(prompt)
        if prompt.stream:
            for piece in _PIECE.findall(message.text):
                yield TextDelta(piece)
        reason = "tool_calls" if message.tool_calls else "stop"
        yield ChatResponse(message, reason, Usage(), self.name)

    def _message(self, prompt: Prompt) -> AssistantMessage:
        asked = next((each.text for each in reversed(prompt.messages) if isinstance(each, UserMessage)), "")
        question = question_of(asked)
        planned = plan(question, tuple(self._read(tool) for tool in prompt.tools[:_MOST_TOOLS]))
        last = prompt.messages[-1] if prompt.messages else None
        if isinstance(last, ToolResponseMessage):
            return AssistantMessage(_answer(last.responses, prompt.messages, question, planned))
        if planned.calls:
            return AssistantMessage(tool_calls=tuple(_calls(planned.calls, prompt.messages)))
        return AssistantMessage(_without_calls(question, planned, prompt.tools))

    def _read(self, tool: ToolDefinition) -> KnownTool:
        """What a tool is about; remembered, since the same objects are offered again and again."""
        remembered = self._known.get(id(tool))
        if remembered is None or remembered.definition is not tool:
            if len(self._known) >= _MOST_REMEMBERED:
                self._known.clear()
            remembered = self._known[id(tool)] = known(tool)
        return remembered


def _without_calls(question: Question, planned: Plan, tools: tuple[ToolDefinition, ...]) -> str:
    if planned.incomplete:
        return "\n".join((*planned.remarks, *_details(question, planned)))
    return without_a_fitting_tool(question, tools) if tools else without_tools(question)


def _calls(calls: tuple[PlannedCall, ...], messages: tuple[Message, ...]) -> list[ToolCall]:
    earlier = sum(len(each.tool_calls) for each in messages if isinstance(each, AssistantMessage))
    return [ToolCall(f"call_{earlier + n}", call.tool.name, _json(call)) for n, call in enumerate(calls, start=1)]


def _json(call: PlannedCall) -> str:
    try:
        return to_json(call.arguments, inf_nan_mode="constants", fallback=str).decode()
    except (PydanticSerializationError, ValueError, RecursionError):
        return "{}"


def _answer(
    responses: tuple[ToolResponse, ...], messages: tuple[Message, ...], question: Question, planned: Plan
) -> str:
    question = question.with_payloads_meant()
    calls = {call.id: call for each in messages if isinstance(each, AssistantMessage) for call in each.tool_calls}
    wanted = horizon(question.command)
    day = wanted.offset if wanted else None
    parts = [told(each, Reader(question.chinese, _place(calls.get(each.id), question), day)) for each in responses]
    told_of = {each.name for each in responses}
    others = tuple(each for each in planned.incomplete if each.tool.name not in told_of)
    parts += _details(question, Plan(incomplete=others))
    parts += planned.remarks
    return "\n".join(parts) or without_tools(question)


def _details(question: Question, planned: Plan) -> Iterable[str]:
    return dict.fromkeys(asking_for(each, question) for each in planned.incomplete)


def _place(call: ToolCall | None, question: Question) -> str | None:
    """The place of a call in the question's own words."""
    arguments = parsed_arguments(call) if call else {}
    values = [each for each in arguments.values() if isinstance(each, str)] if isinstance(arguments, dict) else []
    named = (each for each in places(question) if each.english is not None)
    return next((each.name for each in named if each.zone in values or each.name in values), None)
