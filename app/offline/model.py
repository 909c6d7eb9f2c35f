"""The offline chat model, which needs neither network nor key."""

import re
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from functools import lru_cache

from pydantic_core import PydanticSerializationError, to_json

from app.offline import lexicon
from app.offline.conversation import TodoList, list_parameter, parse_steps, read_in_context
from app.offline.planning import Plan, PlannedCall, plan
from app.offline.question import Question
from app.offline.replies import details, from_results, without_calls
from app.offline.templates import render
from app.offline.tool_profiles import ToolProfile
from toolchat.messages import AssistantMessage, Message, ToolCall, ToolResponseMessage, Usage, UserMessage
from toolchat.models.base import ChatModel, ChatResponse, EmitModelEvent, Prompt, TextDelta
from toolchat.tool_calling.definition import ToolDefinition

__all__ = ["OfflineChatModel"]

_PIECE = re.compile(r".{1,12}", re.DOTALL)
_MOST_TOOLS, _MOST_REMEMBERED = 128, 64
_MOST_BEFORE, _LONGEST = 8, 4000
"""User messages that are read to understand the last one; characters of each."""


class _Toolbox:
    """The offered tools; those of a todo list are separate, since only a question about a list may use them."""

    def __init__(self, definitions: tuple[ToolDefinition, ...]) -> None:
        """Separate the tools of a todo list, if one of them takes items with a text and a status."""
        self.all = tuple(map(ToolProfile, definitions))
        about = [each for each in self.all if lexicon.CONCEPT + "todo" in each.name_terms]
        self.writer = next((each for each in about if list_parameter(each)), None)
        self.reader = next((each for each in about if not each.parameters), None) if self.writer else None
        self.others = tuple(each for each in self.all if each is not self.writer and each is not self.reader)
        # A conversation is read once for all turns of its last question.
        self.read = lru_cache(_MOST_REMEMBERED)(self._read)

    def _read(self, asked: tuple[tuple[str, str], ...]) -> Plan | TodoList:
        """The plan for the last user message: a todo list if it asks for one, otherwise calls."""
        question = read_in_context(asked, lambda about: any(each.is_about(about) for each in self.others))[-1]
        if self.writer and (steps := parse_steps(question)):
            return TodoList(self.writer, question, steps, self.others)
        return self._planned(question)

    def _planned(self, question: Question) -> Plan:
        """Plan calls; the list's tools only if the question names them or asks about the list."""
        command = question.command
        if any(each.is_named_in(question) for each in (self.reader, self.writer) if each):
            return plan(question, self.all)
        if self.reader is None or not lexicon.LIST_ASKED_FOR.search(command) or lexicon.FORBIDDEN.match(command):
            return plan(question, self.others)
        changed = lexicon.LIST_CHANGED.search(command)
        planned = Plan(question) if changed else plan(question, (*self.others, self.reader))
        if not planned.calls and not planned.incomplete:
            planned = Plan(question, (PlannedCall(self.reader, {}),))
        said = (render("list_unchanged", question.chinese),) if changed else ()
        return replace(planned, remarks=(*planned.remarks, *said))


@dataclass(slots=True)
class OfflineChatModel(ChatModel):
    """Selects offered tools by the words of the question, and answers from their results.

    It knows no tool by name, and only names of places, languages and numbers: without a result it says that it does
    not know. It is deterministic. A question takes one round of calls, a plan one or several. No input makes it raise.
    """

    provider = "offline"
    name = "offline"
    # By the ids of the definitions; each entry refers to its definitions, so no other objects can have their ids.
    _toolboxes: dict[tuple[int, ...], _Toolbox] = field(default_factory=dict, init=False, repr=False)

    async def respond(self, prompt: Prompt, emit: EmitModelEvent) -> ChatResponse:
        """Run one turn; see :meth:`ChatModel.respond`. Nothing is raised."""
        chosen = tuple(tool for tool in prompt.tools if tool.name == prompt.options.tool_choice)
        answer = self._answer(self._toolbox(chosen or prompt.tools[:_MOST_TOOLS]), prompt.messages, prompt.guarded)
        if isinstance(answer, str):
            for piece in _PIECE.findall(answer) if prompt.stream else ():
                await emit(TextDelta(piece))
            return ChatResponse(AssistantMessage(answer), "stop", Usage(), self.name)
        earlier = sum(len(each.tool_calls) for each in prompt.messages if isinstance(each, AssistantMessage))
        calls = tuple(_call(f"call_{earlier + n}", each) for n, each in enumerate(answer, 1))
        return ChatResponse(AssistantMessage(tool_calls=calls), "tool_calls", Usage(), self.name)

    def _toolbox(self, tools: tuple[ToolDefinition, ...]) -> _Toolbox:
        """The profiles of the tools; cached, since the same objects are offered in every request."""
        key = tuple(map(id, tools))
        if key not in self._toolboxes:
            if len(self._toolboxes) >= _MOST_REMEMBERED:
                self._toolboxes.clear()
            self._toolboxes[key] = _Toolbox(tools)
        return self._toolboxes[key]

    def _answer(
        self, tools: _Toolbox, messages: tuple[Message, ...], guarded: Collection[str]
    ) -> tuple[PlannedCall, ...] | str:
        """The calls to make, or the answer; only the running turn's results count."""
        start = max((n for n, each in enumerate(messages) if isinstance(each, UserMessage)), default=0)
        asked, turn = _user_messages(messages) or [("", "")], messages[start:]
        calls = [call for each in turn if isinstance(each, AssistantMessage) for call in each.tool_calls]
        answers = {one.id: one for each in turn if isinstance(each, ToolResponseMessage) for one in each.responses}
        responses = [answers.get(call.id) for call in calls]
        planned = tools.read(tuple(asked[-_MOST_BEFORE:]))
        if isinstance(planned, TodoList):
            return planned.proceed(calls, [each for each in responses if each], tools.others)
        if messages and isinstance(messages[-1], ToolResponseMessage):
            return from_results(responses, planned, tools.all)
        if planned.incomplete and not planned.calls:
            return "\n".join((*planned.remarks, *details(planned.incomplete, planned.question)))
        return planned.calls or without_calls(planned.question, tools.others, [text for _, text in asked], guarded)


def _user_messages(messages: tuple[Message, ...]) -> list[tuple[str, str]]:
    """The user messages, each with the answer before it."""
    asked, answer = [], ""
    for each in messages:
        if isinstance(each, AssistantMessage):
            answer = each.text[:_LONGEST] or answer
        elif isinstance(each, UserMessage):
            asked.append((answer, each.text[:_LONGEST]))
    return asked


def _call(call_id: str, planned: PlannedCall) -> ToolCall:
    try:
        arguments = to_json(planned.arguments, inf_nan_mode="constants", fallback=str).decode()
    except (PydanticSerializationError, ValueError, RecursionError):
        arguments = "{}"
    return ToolCall(call_id, planned.tool.name, arguments)
