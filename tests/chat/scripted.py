"""A scripted chat model and an advisor that can be watched, and a client that asks through them."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, repeat

from tests.models.responding import events_of
from toolchat.chat.advisors.base import Advisor, AdvisorChain
from toolchat.chat.advisors.tool_loop import ToolCallingAdvisor, ToolExecutionEligibility, is_eligible
from toolchat.chat.client import ChatClient
from toolchat.chat.request import ChatRequest, Emit
from toolchat.messages import AssistantMessage, ToolCall, ToolResponseMessage, Usage, UserMessage, immutable
from toolchat.models.base import ChatModel, ChatResponse, EmitModelEvent, ModelEvent, Prompt, TextDelta
from toolchat.testing import ScriptedModel, Turn as Turn
from toolchat.tool_calling.callback import StaticToolCallbackResolver
from toolchat.tool_calling.definition import tool
from toolchat.tool_calling.events import discard_event
from toolchat.tool_calling.function_callback import FunctionToolCallback
from toolchat.tool_calling.limits import ToolCallLimits
from toolchat.tool_calling.manager import ToolCallingManager


@immutable
class Unfinished(ChatResponse):
    """A turn that streams its text and then fails; without a fault nothing more comes."""

    fault: Exception | None = None

    async def end(self) -> ChatResponse:
        if self.fault:
            raise self.fault
        await asyncio.Event().wait()
        raise AssertionError("nothing more comes")


def unfinished(text: str, fault: Exception | None = None) -> Unfinished:
    return Unfinished(says(text), "stop", Usage(), "scripted", fault=fault)


class WatchedModel(ScriptedModel):
    """Takes the last turn again and again, and shows how far it came."""

    def __init__(self, turns: Sequence[Turn]) -> None:
        super().__init__(chain(turns, repeat(turns[-1])))
        self.told: list[str] = []
        """The pieces of text. Each is added before it is emitted."""
        self.left = asyncio.Event()

    async def respond(self, prompt: Prompt, emit: EmitModelEvent) -> ChatResponse:
        async def tell(event: ModelEvent) -> None:
            self.told.append(event.text if isinstance(event, TextDelta) else "")
            await emit(event)

        try:
            response = await super().respond(prompt, tell)
        except asyncio.CancelledError:
            self.left.set()
            raise
        return await response.end() if isinstance(response, Unfinished) else response


@dataclass(eq=False)
class MarkingAdvisor(Advisor):
    """Sets its mark behind every answer."""

    order: int = 0
    mark: str = ""

    async def advise(self, request: ChatRequest, chain: AdvisorChain, emit: Emit) -> ChatResponse:
        response = await chain.proceed(request, emit)
        return response.with_text(response.message.text + self.mark)


async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool(return_direct=True)
async def receipt(number: int) -> str:
    return f"receipt {number}"


def says(text: str) -> AssistantMessage:
    return AssistantMessage(text)


def calls(*named: tuple[str, str], text: str = "") -> AssistantMessage:
    return AssistantMessage(text, tuple(ToolCall(f"call_{n}", name, args) for n, (name, args) in enumerate(named)))


async def turn_of(model: ChatModel, *, stream: bool = False) -> list[ModelEvent | ChatResponse]:
    """What a model tells and gives for one question."""
    return await events_of(model, Prompt((UserMessage("?"),), stream=stream))


async def answer_of(chain: AdvisorChain) -> str:
    """What a chain answers to one question."""
    return (await chain.proceed(ChatRequest((UserMessage("?"),)), discard_event)).message.text


def offered(model: WatchedModel) -> list[list[str]]:
    """The names of the tools that a model was told of, turn by turn."""
    return [[tool.name for tool in prompt.tools] for prompt in model.prompts]


def told(prompt: Prompt) -> list[str]:
    """The tool results at the end of what a model was given."""
    last = prompt.messages[-1]
    assert isinstance(last, ToolResponseMessage)
    return [each.text for each in last.responses]


ADD = ("add", '{"a":1,"b":2}')


def client_of(
    *turns: Turn,
    advisors: Sequence[Advisor] = (),
    max_rounds: int = 3,
    max_result_chars: int = 32768,
    limits: ToolCallLimits | None = None,
    eligibility: ToolExecutionEligibility = is_eligible,
) -> tuple[ChatClient, WatchedModel]:
    model = WatchedModel(turns)
    resolver = StaticToolCallbackResolver(
        [FunctionToolCallback.from_function(add), FunctionToolCallback.from_function(receipt)]
    )
    manager = ToolCallingManager(max_result_chars=max_result_chars)
    loop = ToolCallingAdvisor(manager, max_rounds=max_rounds, limits=limits, eligibility=eligibility)
    return ChatClient(model, resolver, (*advisors, loop), "Be brief."), model
