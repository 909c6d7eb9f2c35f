"""Many tools without telling the model about all of them: it searches for those that it needs."""

import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from pydantic import Field

from app.chat.advisors import Advisor, AdvisorChain
from app.chat.request import ChatRequest, Emit
from app.chat_models.base import ChatResponse
from app.messages import Message, SystemMessage, ToolResponseMessage, UserMessage
from app.tool_calling.callback import ToolCallback
from app.tool_calling.definition import ToolDefinition
from app.tool_calling.function_callback import FunctionToolCallback
from app.tool_calling.search_index import ToolIndex

__all__ = ["MOST_FOUND", "SEARCH_TOOL", "ToolSearchAdvisor"]

SEARCH_TOOL = "searchTools"
"""The name of the search tool, unless a tool on offer has it; then a number follows."""
MOST_FOUND = 8
"""Tools that one search finds at most."""

_MAX_KEPT = 16
_SHOWN_DESCRIPTION = 200
_INSTRUCTIONS = (
    "Find tools. You have {count} tools, and most of them are not shown: you can call those that you see, and those "
    "that a search has found, from your next message on. Search before you say that you cannot do or know "
    "something, once for each kind of thing that you need, and do not guess the names of tools."
)
_QUERY = "What the tool is to do, in a few words, such as: weather forecast, 发送邮件; or the name of a tool"
_CALL_THEM = "you can call these now; search again, in other words, if none of them will do"
_NO_TOOL = "no tool has these words; search again in other words, in English or in the language of the question"

# Results are searched and not parsed: one that was cut to fit still names the tools that the model was shown.
_FOUND = re.compile(r'\{"name":"([^"\\]+)"')
_NAMES = re.compile(r"\w[\w.-]*", re.ASCII)

Query = Annotated[str, Field(description=_QUERY)]


class ToolSearchAdvisor(Advisor):
    """Offers one tool that searches the others, and what it has found, when there are many.

    It stands inside the tool loop and changes what a turn offers; the loop goes on knowing all tools, so that nothing
    else changes: consent, limits, time-outs, the trace. What the instructions or the question call by name is offered
    from the first turn on. What was found stays for the rest of the question: it is read from the results of the
    searches in the conversation, so that nothing is kept between two turns, and a question that paused goes on as
    it was. It steps aside where the caller runs the calls himself, for he does not have the search tool.
    """

    order = 310

    def __init__(self, above: int = 30) -> None:
        """Take the number of tools that are offered as they are; 0 never searches."""
        self._above = above
        self._kept: OrderedDict[tuple[int, ...], _SearchableTools] = OrderedDict()

    def applies(self, request: ChatRequest) -> bool:
        """See :meth:`Advisor.applies`."""
        return 0 < self._above < len(request.tools) and request.options.internal_tool_execution_enabled

    async def advise(self, request: ChatRequest, chain: AdvisorChain, emit: Emit) -> ChatResponse:
        """See :meth:`Advisor.advise`."""
        if self.applies(request):
            request = replace(request, tools=self._searchable(request.tools).offered(request.messages))
        return await chain.proceed(request, emit)

    def _searchable(self, tools: tuple[ToolCallback, ...]) -> "_SearchableTools":
        # By identity: the entry holds on to its tools, so that no others can have their ids.
        key = tuple(map(id, tools))
        if key not in self._kept:
            self._kept[key] = _SearchableTools.of(tools)
        self._kept.move_to_end(key)
        if len(self._kept) > _MAX_KEPT:
            self._kept.popitem(last=False)
        return self._kept[key]


@dataclass(frozen=True, slots=True)
class _SearchableTools:
    """A set of tools, and the tool that searches it."""

    tools: tuple[ToolCallback, ...]
    by_name: Mapping[str, ToolCallback]
    search: ToolCallback

    @classmethod
    def of(cls, tools: tuple[ToolCallback, ...]) -> "_SearchableTools":
        by_name = {tool.definition.name: tool for tool in tools}
        index = ToolIndex([tool.definition for tool in tools])

        async def search(query: Query) -> dict[str, Any]:
            return _result(index.search(query, MOST_FOUND))

        told = _INSTRUCTIONS.format(count=len(tools))
        return cls(tools, by_name, FunctionToolCallback.of(search, name=_free_name(by_name), description=told))

    def offered(self, messages: Sequence[Message]) -> tuple[ToolCallback, ...]:
        """The search tool, then what has been found, in that order: a provider's cache holds on to the beginning."""
        names = dict.fromkeys((*_named(messages), *self._found(messages)))
        return (self.search, *(self.by_name[name] for name in names if name in self.by_name))

    def _found(self, messages: Sequence[Message]) -> Iterator[str]:
        for message in _running(messages):
            for response in message.responses if isinstance(message, ToolResponseMessage) else ():
                if response.name == self.search.definition.name:
                    yield from _FOUND.findall(response.text)


def _result(found: Sequence[ToolDefinition]) -> dict[str, Any]:
    tools = [{"name": each.name, "description": _short(each.description)} for each in found]
    return {"tools": tools, "note": _CALL_THEM if tools else _NO_TOOL}


def _short(description: str) -> str:
    # The model is told the whole of it with the tool itself.
    return description if len(description) <= _SHOWN_DESCRIPTION else f"{description[: _SHOWN_DESCRIPTION - 3]}..."


def _free_name(taken: Iterable[str]) -> str:
    name, number = SEARCH_TOOL, 1
    while name in taken:
        number += 1
        name = f"{SEARCH_TOOL}{number}"
    return name


def _running(messages: Sequence[Message]) -> Sequence[Message]:
    """The messages of the running question, itself included."""
    asked = (place for place in reversed(range(len(messages))) if isinstance(messages[place], UserMessage))
    return messages[next(asked, 0) :]


def _named(messages: Sequence[Message]) -> Iterator[str]:
    """What may be the name of a tool in the instructions and in the running question."""
    instructions = [each for each in messages if isinstance(each, SystemMessage)]
    for message in (*instructions, *_running(messages)[:1]):
        if isinstance(message, SystemMessage | UserMessage):
            yield from (each.rstrip(".-") for each in _NAMES.findall(message.text))
