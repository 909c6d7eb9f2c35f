"""A turn whose process dies anywhere goes on at its last checkpoint: no call that writes runs twice, none is lost."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from pydantic_core import from_json, to_json

from tests.chat.scripted import calls, says
from tests.waiting import PATIENCE
from toolchat.chat.advisors.base import Advisor, AdvisorChain
from toolchat.chat.advisors.tool_loop import APPROVAL_REQUIRED
from toolchat.chat.client import ChatClient
from toolchat.chat.request import ChatEvent, ChatRequest, Emit
from toolchat.messages import AssistantMessage, Usage
from toolchat.models.base import ChatModel, ChatResponse, EmitModelEvent, Prompt, TextDelta
from toolchat.service.api.background.checkpoints import CheckpointAdvisor
from toolchat.service.api.paused_turns import turn_of, turn_record
from toolchat.tool_calling.callback import ClientToolCallback
from toolchat.tool_calling.context import ToolContext
from toolchat.tool_calling.definition import ToolDefinition, tool
from toolchat.tool_calling.events import ToolCallFinished

SHIP, BILL, LOOK, PAY, BUY = [(name, "{}") for name in ("ship", "bill", "look", "pay", "buy")]
ROLL = ClientToolCallback(ToolDefinition("roll", "Roll a die", {"type": "object", "properties": {}}))
USAGE = Usage(10, 2)
MANY = 1000
"""Steps that no process takes."""


@dataclass
class Process(ChatModel):
    """A model and tools that die at one of their steps, with the question's advisor."""

    script: Sequence[AssistantMessage]
    stored: list[bytes] = field(default_factory=list)
    """The last checkpoint of all processes."""
    ran: list[str] = field(default_factory=list)
    """The calls that have run in all processes, with their keys."""
    left: int = MANY
    """The steps until it dies."""
    client_tools: Sequence[Any] = ()
    provider = name = "scripted"
    told: list[str] = field(default_factory=list)
    """The texts that it has told, and the calls whose end."""
    died: asyncio.Event = field(default_factory=asyncio.Event)

    async def step(self) -> None:
        self.left -= 1
        if self.left <= 0:
            self.died.set()
            await asyncio.Event().wait()

    async def respond(self, prompt: Prompt, emit: EmitModelEvent) -> ChatResponse:
        await self.step()
        message = self.script[sum(isinstance(each, AssistantMessage) for each in prompt.messages)]
        await emit(TextDelta(message.text))
        return ChatResponse(message, "tool_calls" if message.tool_calls else "stop", USAGE, "scripted")

    async def save(self, turn: ChatResponse) -> None:
        await self.step()
        for _ in range(9 - len(turn.executions)):  # an earlier one takes longer
            await asyncio.sleep(0)
        self.stored[:] = [to_json(turn_record(replace(turn, context=ToolContext())))]
        await self.step()

    async def emit(self, event: ChatEvent) -> None:
        if isinstance(event, TextDelta) and event.text:
            self.told.append(event.text)
        if isinstance(event, ToolCallFinished):
            self.told.append(event.call.name)

    def tool(self, name: str, **options: Any) -> Callable[..., Any]:
        @tool(name=name, description=name, **options)
        async def run(context: ToolContext) -> str:
            await self.step()
            self.ran.append(f"{name} {context.idempotency_key}")
            await self.step()
            return f"{name} done"

        return run

    async def answer(self, *advisors: Advisor) -> ChatResponse | None:
        """The answer; ``None`` if the process has died before."""
        earlier = turn_of(from_json(self.stored[0])) if self.stored else None
        advisor = CheckpointAdvisor("q", earlier, self.save)
        own = self.tool("ship"), self.tool("bill"), self.tool("look", read_only=True), self.tool("pay", retries=1)
        others = self.tool("buy", requires_approval=True), *self.client_tools
        prompt = ChatClient(self).prompt("Go").tools(*own, *others).advisors(*advisors)
        answering = asyncio.create_task(advisor.prompt(prompt).stream().response(self.emit))
        dying = asyncio.create_task(self.died.wait())
        await asyncio.wait([answering, dying], timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED)
        answering.cancel()
        dying.cancel()
        await asyncio.wait([answering, dying])
        return None if answering.cancelled() else answering.result()


async def deaths(
    script: Sequence[AssistantMessage], *client_tools: Any
) -> AsyncGenerator[tuple[ChatResponse, Process], None]:
    """The answers after two processes have died one after another, each at any of its steps."""
    for first in range(1, MANY):
        for second in range(1 + first % 4, MANY, 4):
            process = Process(script, left=first, client_tools=client_tools)
            if await process.answer() is not None:
                return
            again = Process(script, process.stored, process.ran, second, client_tools)
            is_last = await again.answer() is not None
            last = Process(script, again.stored, again.ran, client_tools=client_tools)
            answer = await last.answer()
            assert answer is not None
            yield answer, last
            if is_last:
                break


def calls_of(answer: ChatResponse) -> list[tuple[int, str]]:
    return sorted((each.round, each.call.name) for each in answer.executions)


@pytest.mark.parametrize(
    "script",
    [
        (calls(SHIP, text="first"), calls(BILL, text="then"), says("done")),
        (calls(SHIP, BILL, text="both"), says("done")),
        (calls(LOOK), calls(SHIP, LOOK), calls(PAY, BILL, text="pay"), calls(PAY), says("done")),
    ],
)
async def test_nothing_is_lost_or_done_twice_wherever_processes_die(script: Sequence[AssistantMessage]) -> None:
    whole = await (one := Process(script)).answer()
    assert whole is not None
    keys = {each for each in one.ran if each.startswith("pay")}
    assert len(keys) == sum(name == "pay" for _, name in calls_of(whole))
    outcomes: set[tuple[str, str]] = set()
    async for answer, process in deaths(script):
        assert (answer.message.text, answer.rounds, answer.usage) == ("done", whole.rounds, whole.usage)
        assert calls_of(answer) == calls_of(whole)
        assert sorted(process.told) == sorted(one.told)
        names = [each.split()[0] for each in process.ran]
        for each in answer.executions:
            outcomes.add((each.call.name, each.error_kind or each.result))
            assert each.error_kind or each.call.name in names, "a result that no call had"
        assert names.count("ship") <= 1
        assert names.count("bill") <= 1
        assert {each for each in process.ran if each.startswith("pay")} == keys
    assert {("ship", "ship done"), ("ship", "outcome-unknown")} <= outcomes
    assert not {("look", "outcome-unknown"), ("pay", "outcome-unknown")} & outcomes


async def test_a_call_that_needs_approval_still_waits_for_it() -> None:
    async for answer, process in deaths((calls(BUY, SHIP),)):
        assert answer.finish_reason == APPROVAL_REQUIRED
        assert [each.name for each in answer.waiting_calls] == ["buy"]
        assert answer.options.tool_choice is None
        assert [each.split()[0] for each in process.ran].count("ship") <= 1


async def test_a_call_that_the_client_runs_is_still_the_clients() -> None:
    async for answer, process in deaths((calls(SHIP, ("roll", "{}")),), ROLL):
        assert answer.finish_reason == "tool_calls"
        assert [each.name for each in answer.waiting_calls] == ["roll"]
        assert [each.split()[0] for each in process.ran].count("ship") <= 1


class Twice(Advisor):
    """Asks again after the answer."""

    order = 100

    async def advise(self, request: ChatRequest, chain: AdvisorChain, emit: Emit) -> ChatResponse:
        await chain.proceed(request, emit)
        return await chain.proceed(request, emit)


async def test_what_an_advisor_asks_again_has_its_own_checkpoints() -> None:
    process = Process((calls(SHIP), says("done")))
    await process.answer(Twice())
    assert len(turn_of(from_json(process.stored[0])).executions) == 1
