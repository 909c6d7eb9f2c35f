"""A conversation as a page sends it, in our words."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from pydantic_core import to_json

from app.api.ai_sdk.wire import Part, UIMessage
from app.errors import InvalidRequest
from app.messages import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolCall,
    ToolResponse,
    ToolResponseMessage,
    UserMessage,
)

__all__ = ["conversation"]

_NAME = re.compile("[A-Za-z0-9_-]{1,64}")
"""What every provider takes as the name of a tool; a model may have made up another one."""


def conversation(sent: Sequence[UIMessage], instructions: str = "") -> tuple[Message, ...]:
    """Read the messages of a request.

    What they say as ``system`` stands below the service's own instructions. Each step of an answer becomes a message
    with its calls, and their results; calls without a result are left out, as is whatever else only pages show.

    Raises:
        InvalidRequest: a message holds what no model is given here, or there is none with a text.
    """
    texts = [instructions, *(_text(each, place) for place, each in enumerate(sent) if each.role == "system")]
    system = "\n\n".join(filter(None, texts))
    said = [message for place, each in enumerate(sent) for message in _said(each, place)]
    if not said:
        raise InvalidRequest("messages: none has a text")
    return (*([SystemMessage(system)] if system else ()), *said)


def _said(message: UIMessage, place: int) -> Iterator[Message]:
    if message.role == "user":
        text = _text(message, place)
        if text.strip():
            yield UserMessage(text)
    elif message.role == "assistant":
        for step in _steps(message.parts):
            yield from _turn(step)


def _steps(parts: Sequence[Part]) -> Iterator[list[Part]]:
    """What the model said at once: pages mark where a step begins, and text behind a call is one, too."""
    step: list[Part] = []
    for part in parts:
        if part.type == "step-start" or (part.type == "text" and step and step[-1].type != "text"):
            yield step
            step = []
        if part.type == "text" or _name_of(part):
            step.append(part)
    yield step


def _turn(step: Sequence[Part]) -> Iterator[Message]:
    text = "\n".join(part.text for part in step if part.type == "text")
    ended = [part for part in step if part.type != "text"]
    calls = tuple(ToolCall(part.tool_call_id, _name_of(part), _json(part.input or {})) for part in ended)
    if text or calls:
        yield AssistantMessage(text, calls)
    if calls:
        results = (ToolResponse(part.tool_call_id, _name_of(part), _result(part)) for part in ended)
        yield ToolResponseMessage(tuple(results))


def _name_of(part: Part) -> str:
    """The name of the tool of a call that has ended; empty for all else."""
    if not part.tool_call_id or part.state not in ("output-available", "output-error", "output-denied"):
        return ""
    name = part.tool_name if part.type == "dynamic-tool" else part.type.removeprefix("tool-")
    return name if name and _NAME.fullmatch(name) else ""


def _result(part: Part) -> str:
    if part.state == "output-available":
        return _json(part.output)
    reason = part.approval.reason if part.approval else None
    return _json({"error": {"message": part.error_text or reason or "the user rejected this call"}})


def _json(value: Any) -> str:
    """A value as JSON, which it was; a text stays as it is."""
    return value if isinstance(value, str) else to_json(value, inf_nan_mode="strings").decode()


def _text(message: UIMessage, place: int) -> str:
    for number, part in enumerate(message.parts):
        if part.type == "file":
            raise InvalidRequest(
                f"messages[{place}].parts[{number}]: a file is not taken here; the models are given text only"
            )
    return "\n".join(part.text for part in message.parts if part.type == "text")
