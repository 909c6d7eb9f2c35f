"""Calling tools as a question does, and the tools that several tests call."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import BaseModel

from tests.waiting import until
from toolchat.messages import AssistantMessage, ToolCall, UserMessage
from toolchat.tool_calling.callback import ToolCallback
from toolchat.tool_calling.context import ToolContext
from toolchat.tool_calling.definition import ToolMetadata, tool
from toolchat.tool_calling.events import EmitToolCall, ToolCallEvent, ToolCallFinished, discard_event
from toolchat.tool_calling.function_callback import FunctionToolCallback
from toolchat.tool_calling.limits import CallCounter, ToolCallLimits
from toolchat.tool_calling.manager import ToolCallingManager, ToolExecutionResult

EMPTY = ToolContext()
PARIS, ROME = '{"city": "Paris"}', '{"city": "Rome"}'

AnyTool = ToolCallback | Callable[..., Any]


def _callbacks(tools: Sequence[AnyTool]) -> list[ToolCallback]:
    return [each if isinstance(each, ToolCallback) else FunctionToolCallback.from_function(each) for each in tools]


def call(name: str, arguments: str = "{}", identifier: str = "call_1") -> ToolCall:
    return ToolCall(identifier, name, arguments)


async def run(
    *asked: ToolCall | tuple[str, str],
    tools: Sequence[AnyTool],
    manager: ToolCallingManager | None = None,
    emit: EmitToolCall = discard_event,
) -> ToolExecutionResult:
    """Run calls as a caller does who controls the loop himself; those without an id get call_0, call_1 and so on."""
    calls = [each if isinstance(each, ToolCall) else call(*each, f"call_{n}") for n, each in enumerate(asked)]
    asking = AssistantMessage(tool_calls=tuple(calls))
    manager, history = manager or ToolCallingManager(), [UserMessage("?")]
    return await manager.execute_tool_calls(history, asking, _callbacks(tools), emit=emit)


async def only(asked: ToolCall | tuple[str, str], *, tools: Sequence[AnyTool], **settings: Any) -> ToolCallFinished:
    """The end of the one call that is run; the settings are those of the manager."""
    return (await run(asked, tools=tools, manager=ToolCallingManager(**settings))).executions[0]


async def executing(
    *calls: ToolCall, tools: Sequence[AnyTool], counter: CallCounter | None = None, **settings: Any
) -> list[ToolCallEvent]:
    """What the loop of a question is told while calls run."""
    told: list[ToolCallEvent] = []

    async def emit(event: ToolCallEvent) -> None:
        told.append(event)

    offered = {each.definition.name: each for each in _callbacks(tools)}
    counter = counter or CallCounter(ToolCallLimits())
    await ToolCallingManager(**settings).execute(calls, offered, EMPTY, emit, counter=counter)
    return told


async def called(
    callback: ToolCallback,
    arguments: str = PARIS,
    *,
    times: int = 1,
    counter: CallCounter | None = None,
    **settings: Any,
) -> ToolCallFinished:
    """One call as a question makes it; with ``times`` the last of several, one after the other."""
    counter = counter or CallCounter(ToolCallLimits())
    for _ in range(times):
        asked = call(callback.definition.name, arguments)
        *_, last = await executing(asked, tools=[callback], counter=counter, **settings)
    assert isinstance(last, ToolCallFinished)
    return last


@dataclass
class Atlas:
    """A tool that may repeat, and a door that keeps its runs inside until it is opened."""

    door: asyncio.Event = field(default_factory=asyncio.Event)
    runs: list[str] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    faults: list[BaseException] = field(default_factory=list)

    @tool(cache_seconds=60)
    async def locate(self, city: str, detail: int = 1) -> str:
        """Tell where a city is."""
        self.runs.append(city)
        try:
            await self.door.wait()
        finally:
            self.ended.append(city)
        if self.faults:
            raise self.faults.pop(0)
        return f"{city} {len(self.runs)}"

    def open(self) -> "Atlas":
        self.door.set()
        return self

    def callback(self, **metadata: Any) -> FunctionToolCallback:
        return replace(
            FunctionToolCallback.from_function(self.locate), metadata=ToolMetadata(**{"cache_seconds": 60} | metadata)
        )


@asynccontextmanager
async def asking(
    atlas: Atlas, callback: FunctionToolCallback, number: int
) -> AsyncGenerator[list[asyncio.Task[ToolCallFinished]], None]:
    """Equal calls that all wait for the one run, which waits at the door."""
    tasks = [asyncio.create_task(called(callback)) for _ in range(number)]
    await until(lambda: sum(len(each._callbacks or ()) + 1 for each in flights(callback).values()) == number)
    yield tasks
    atlas.open()
    await asyncio.gather(*tasks, return_exceptions=True)


def flights(callback: FunctionToolCallback) -> dict[bytes, asyncio.Future[Any]]:
    """The runs that calls of a tool wait for."""
    assert callback._cache is not None
    return callback._cache._running


class Place(BaseModel):
    """Where it is."""

    name: str
    country: str = "CN"


def callback_of(annotation: Any) -> FunctionToolCallback:
    """A tool that takes ``value`` and ``other`` and tells what Python was given as ``value``."""

    async def told(value: Any, other: int = 0) -> str:
        return repr(value)

    told.__annotations__["value"] = annotation
    return FunctionToolCallback.from_function(told)


def schema_of(annotation: Any) -> dict[str, Any]:
    """The schema of a tool's one parameter ``value``, and of nothing else."""
    return dict(callback_of(annotation).definition.input_schema["properties"]["value"])
