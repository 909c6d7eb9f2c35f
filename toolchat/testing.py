"""A chat model for tests: it answers from a script, without a network, and keeps what it was asked."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from pydantic_core import to_json

from toolchat.messages import AssistantMessage, ToolCall, Usage
from toolchat.models.base import ChatModel, ChatResponse, EmitModelEvent, Prompt, TextDelta

Turn = str | ToolCall | Sequence[ToolCall] | AssistantMessage | ChatResponse | Exception | Callable[[Prompt], "Turn"]
"""What a :class:`ScriptedModel` does when it is asked once: answer, call one or several tools, raise, or decide."""


def call(name: str, /, **arguments: Any) -> ToolCall:
    """Write a tool call for the script of a :class:`ScriptedModel`, which gives it an id.

    Args:
        name: the tool's name.
        **arguments: the arguments, written as JSON; ``**{"from": "en"}`` for a name that Python does not allow.
    """
    return ToolCall("", name, to_json(arguments).decode())


class ScriptedModel(ChatModel):
    """Takes its turns from a script, in order.

    A turn is the text of an answer, a call or several calls, a whole message or response, an exception to raise, or a
    function that makes one of them from the prompt. Each turn counts 10 input and 2 output tokens.

    Args:
        turns: the script.
    """

    provider = "scripted"
    name = "scripted"

    def __init__(self, turns: Iterable[Turn]) -> None:
        self._turns = iter(turns)
        self.prompts: list[Prompt] = []
        """What the model was asked, request by request: the messages, the tools and the options."""

    async def respond(self, prompt: Prompt, emit: EmitModelEvent) -> ChatResponse:
        """Take the next turn; with ``prompt.stream``, the text is emitted character by character.

        Raises:
            AssertionError: the script has no further turn.
        """
        self.prompts.append(prompt)
        response = self._response(self._next(prompt), prompt)
        for piece in response.message.text if prompt.stream else ():
            await emit(TextDelta(piece))
        return response

    def _next(self, prompt: Prompt) -> Turn:
        for turn in self._turns:
            return turn
        ended = f"the script ended after {len(self.prompts) - 1} turns, but the model was asked again"
        raise AssertionError(f"{ended}; the last message is {str(prompt.messages[-1:])[:500]}")

    def _response(self, turn: Turn, prompt: Prompt) -> ChatResponse:
        if isinstance(turn, Exception):
            raise turn
        if isinstance(turn, ChatResponse):
            return turn
        if callable(turn):
            return self._response(turn(prompt), prompt)
        message = turn if isinstance(turn, AssistantMessage) else self._message(turn)
        return ChatResponse(message, "tool_calls" if message.tool_calls else "stop", Usage(10, 2), self.name)

    def _message(self, turn: str | ToolCall | Sequence[ToolCall]) -> AssistantMessage:
        if isinstance(turn, str):
            return AssistantMessage(turn)
        calls = [turn] if isinstance(turn, ToolCall) else turn
        numbered = [replace(each, id=each.id or f"call_{len(self.prompts)}_{n}") for n, each in enumerate(calls, 1)]
        return AssistantMessage(tool_calls=tuple(numbered))
