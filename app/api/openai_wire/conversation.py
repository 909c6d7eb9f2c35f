"""A conversation as the client sends it, in our words."""

from collections.abc import Iterable, Sequence

from app.api.openai_wire.errors import BadRequest
from app.api.openai_wire.wire import WireMessage
from app.messages import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolCall,
    ToolResponse,
    ToolResponseMessage,
    UserMessage,
)

__all__ = ["conversation", "running_turn"]


def conversation(sent: Sequence[WireMessage], instructions: str = "") -> tuple[Message, ...]:
    """Read the messages of a request.

    What the client says first as ``system`` or ``developer`` stands below the service's own instructions in one
    message: some models refuse a second one. Results of tools that follow each other become one message.

    Raises:
        BadRequest: a message holds what no model is given here, or calls and results do not belong together.
    """
    leading = next((place for place, each in enumerate(sent) if each.role not in _SYSTEM), len(sent))
    texts = [instructions, *(_text(each, place) for place, each in enumerate(sent[:leading]))]
    system = "\n\n".join(filter(None, texts))
    messages: list[Message] = [SystemMessage(system)] if system else []
    waiting: dict[str, str] = {}
    """The names of the calls, by id, whose results must come next."""
    for place, each in enumerate(sent[leading:], leading):
        if each.role == "tool":
            _add_result(messages, each, waiting, place)
            continue
        _refuse_missing(waiting)
        messages.append(_message(each, place))
        waiting = {call.id: call.function.name for call in each.tool_calls or () if each.role == "assistant"}
    _refuse_missing(waiting)
    return tuple(messages)


def running_turn(messages: Sequence[Message]) -> int:
    """Where the messages after the last question begin."""
    return max((place for place, each in enumerate(messages, 1) if isinstance(each, UserMessage)), default=0)


_SYSTEM = ("system", "developer")


def _message(sent: WireMessage, place: int) -> Message:
    text = _text(sent, place)
    if sent.role == "user":
        return UserMessage(text)
    if sent.role == "assistant":
        calls = tuple(ToolCall(each.id, each.function.name, each.function.arguments) for each in sent.tool_calls or ())
        return AssistantMessage(text, calls, {"reasoning_content": it} if (it := sent.reasoning_content) else {})
    return SystemMessage(text)


def _add_result(messages: list[Message], sent: WireMessage, waiting: dict[str, str], place: int) -> None:
    name = waiting.pop(sent.tool_call_id or "", None)
    if name is None:
        raise BadRequest(
            f"messages[{place}]: a message of the role 'tool' must answer a call of the assistant's message before it",
            f"messages[{place}].tool_call_id",
        )
    response = ToolResponse(sent.tool_call_id or "", name, _text(sent, place))
    last = messages[-1]
    if isinstance(last, ToolResponseMessage):
        messages[-1] = ToolResponseMessage((*last.responses, response))
    else:
        messages.append(ToolResponseMessage((response,)))


def _refuse_missing(waiting: Iterable[str]) -> None:
    if missing := ", ".join(waiting):
        raise BadRequest(f"tool calls without a message of the role 'tool' that answers them: {missing}", "messages")


def _text(sent: WireMessage, place: int) -> str:
    if sent.content is None or isinstance(sent.content, str):
        return sent.content or ""
    texts: list[str] = []
    for number, part in enumerate(sent.content):
        text = part.refusal if part.type == "refusal" else part.text if part.type == "text" else None
        if text is None:
            param = f"messages[{place}].content[{number}]"
            raise BadRequest(f"{param}: {part.type[:32]} is not taken here; the models are given text only", param)
        texts.append(text)
    return "\n".join(texts)
