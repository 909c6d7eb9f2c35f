"""A chat model that answers from a script, an advisor that can be seen, and a client that asks through them."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tests.models.responding import events_of
from toolchat.chat.advisors.base import Advisor, AdvisorChain
from toolchat.chat.advisors.tool_loop import ToolCallingAdvisor, ToolExecutionEligibility, is_eligible
from toolchat.chat.client import ChatClient
from toolchat.chat.request import ChatRequest, Emit
from toolchat.messages import AssistantMessage, ToolCall, ToolResponseMessage, Usage, UserMessage
from toolchat.models.base import ChatModel, ChatResponse, EmitModelEvent, ModelEvent, Prompt, TextDelta
from toolchat.tool_calling.callback import StaticToolCallbackResolver
from toolchat.tool_calling.definition import tool
from toolchat.tool_calling.events import discard_event
from toolchat.tool_calling.function_callback import FunctionToolCallback
from toolchat.tool_calling.limits import ToolCallLimits
from toolchat.tool_calling.manager import ToolCallingManager

__all__ = [
    "ADD",
    "MarkingAdvisor",
    "ScriptedChatModel",
    "Turn",
    "Unfinished",
    "add",
    "answer_of",
    "calls",
    "client_of",
    "offered",
    "receipt",
    "says",
    "told",
    "turn_of",
]


@dataclass(frozen=True)
class Unfinished:
    """A turn that streams its text and then fails; without a fault nothing more comes."""

    message: AssistantMessage
    fault: Exception | None = None

    async def end(self) -> ChatResponse:
        if self.fault:
            raise self.fault
        await asyncio.Event().wait()
        raise AssertionError("nothing more comes")


Turn = AssistantMessage | ChatResponse | Unfinished | Exception | Callable[[Prompt], AssistantMessage]


@dataclass
class ScriptedChatModel(ChatModel):
    """Answers with the given turns in order, the last one again and again; keeps what it was asked."""

    turns: Sequence[Turn]
    provider: str = "scripted"
    name: str = "scripted"
    prompts: list[Prompt] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    """The pieces of text, each noted before it is told."""
    left: asyncio.Event = field(default_factory=asyncio.Event)

    async def respond(self, prompt: Prompt, emit: EmitModelEvent) -> ChatResponse:
        self.prompts.append(prompt)
        turn = self.turns[min(len(self.prompts), len(self.turns)) - 1]
        turn = turn(prompt) if callable(turn) else turn
        if isinstance(turn, Exception):
            raise turn
        response = _response(turn) if isinstance(turn, AssistantMessage) else turn
        try:
            for piece in response.message.text if prompt.stream else ():
                self.told.append(piece)
                await emit(TextDelta(piece))
        except asyncio.CancelledError:
            self.left.set()
            raise
        return await response.end() if isinstance(response, Unfinished) else response


def _response(message: AssistantMessage) -> ChatResponse:
    return ChatResponse(message, "tool_calls" if message.tool_calls else "stop", Usage(10, 2), "scripted-1")


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


def offered(model: ScriptedChatModel) -> list[list[str]]:
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
) -> tuple[ChatClient, ScriptedChatModel]:
    model = ScriptedChatModel(turns)
    resolver = StaticToolCallbackResolver(
        [FunctionToolCallback.from_function(add), FunctionToolCallback.from_function(receipt)]
    )
    manager = ToolCallingManager(max_result_chars=max_result_chars)
    loop = ToolCallingAdvisor(manager, max_rounds=max_rounds, limits=limits, eligibility=eligibility)
    return ChatClient(model, resolver, (*advisors, loop), "Be brief."), model
