"""A chat model that answers from a script, and a client that asks it."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field

from app.chat.advisors import Advisor
from app.chat.client import ChatClient
from app.chat.tool_calling_advisor import ToolCallingAdvisor, ToolExecutionEligibility, is_eligible
from app.chat_models.base import ChatModel, ChatResponse, ModelEvent, Prompt, TextDelta
from app.messages import AssistantMessage, ToolCall, Usage
from app.tool_calling.function_callback import FunctionToolCallback, tool
from app.tool_calling.limits import ToolCallLimits
from app.tool_calling.manager import ToolCallingManager
from app.tool_calling.resolver import StaticToolCallbackResolver

__all__ = ["ADD", "ScriptedChatModel", "Turn", "add", "calls", "client_of", "receipt", "says"]

Turn = AssistantMessage | Exception | Callable[[Prompt], AssistantMessage]


@dataclass
class ScriptedChatModel(ChatModel):
    """Answers with the given turns in order, the last one again and again; keeps what it was asked."""

    turns: Sequence[Turn]
    provider: str = "scripted"
    name: str = "scripted"
    prompts: list[Prompt] = field(default_factory=list)
    left: asyncio.Event = field(default_factory=asyncio.Event)

    async def respond(self, prompt: Prompt) -> AsyncGenerator[ModelEvent, None]:
        self.prompts.append(prompt)
        turn = self.turns[min(len(self.prompts), len(self.turns)) - 1]
        message = turn(prompt) if callable(turn) else turn
        if isinstance(message, Exception):
            raise message
        try:
            for piece in message.text if prompt.stream else ():
                yield TextDelta(piece)
        except GeneratorExit:
            self.left.set()
            raise
        yield ChatResponse(message, "tool_calls" if message.tool_calls else "stop", Usage(10, 2), "scripted-1")


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
    resolver = StaticToolCallbackResolver([FunctionToolCallback.of(add), FunctionToolCallback.of(receipt)])
    manager = ToolCallingManager(max_result_chars=max_result_chars)
    loop = ToolCallingAdvisor(manager, max_rounds=max_rounds, limits=limits, eligibility=eligibility)
    return ChatClient(model, resolver, (*advisors, loop), "Be brief."), model
