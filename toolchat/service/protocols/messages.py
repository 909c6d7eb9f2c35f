"""Conversations of all wires as the engine's messages: the instructions first, and every call with its result."""

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import NamedTuple, Protocol

from toolchat.messages import (
    MAX_IMAGES,
    AssistantMessage,
    Message,
    SystemMessage,
    ToolResponse,
    ToolResponseMessage,
    UserMessage,
)
from toolchat.service.protocols.wire import IMAGE_TYPES, TEXT_TYPES, BadRequest, Part

SYSTEM_ROLES = ("system", "developer")
"""OpenAI calls "system" "developer" for reasoning models; other providers know only "system"."""


_THOUGHTS = ("thinking", "redacted_thinking", "reasoning", "reasoning_text")
"""Parts of an earlier message that belong to the model that wrote it."""


class FieldNames(NamedTuple):
    """The names of a request's fields in error messages."""

    messages: str
    call_id: str


class Sent(Protocol):
    """A message of a request."""

    @property
    def role(self) -> str | None:
        """Who has written it."""

    @property
    def content(self) -> str | Sequence[Part] | None:
        """Its text, or its parts."""


def conversation(sent: Iterable[tuple[int, Message]], instructions: str, names: FieldNames) -> tuple[Message, ...]:
    """Put a conversation together as all providers accept it: one system message, and results behind their calls."""
    texts, messages = [instructions], list[Message]()
    results = defaultdict[str, deque[tuple[int, ToolResponse]]](deque)
    last: Message | None = None
    for index, message in sent:
        if isinstance(message, ToolResponseMessage):
            if not message.responses[0].id:
                param = f"{names.messages}[{index}].{names.call_id}"
                raise BadRequest(f"{param}: is missing", param)
            results[message.responses[0].id].append((index, message.responses[0]))
        elif isinstance(message, SystemMessage) and not messages:
            texts.append(message.text)
        elif joined := _joined(last, message):
            messages[-1] = message = joined
        else:
            messages.append(message)
        last = message
    complete = [each for message in messages for each in _with_results(message, results, names)]
    for index, response in chain.from_iterable(results.values()):
        place = f"{names.messages}[{index}]"
        raise BadRequest(f"{place}: must answer a call of the assistant ({response.id})", f"{place}.{names.call_id}")
    system = "\n\n".join(filter(None, texts))
    return (SystemMessage(system), *complete) if system else tuple(complete)


def _joined(last: Message | None, message: Message) -> AssistantMessage | None:
    """The assistant's message that two are parts of: some clients send each parallel call, or its text, alone."""
    if not isinstance(last, AssistantMessage) or not isinstance(message, AssistantMessage):
        return None
    if not (calls := (*last.tool_calls, *message.tool_calls)):
        return None
    text = "\n".join(filter(None, (last.text, message.text)))
    return AssistantMessage(text, calls, {**last.extra, **message.extra})


def _with_results(
    message: Message, results: Mapping[str, deque[tuple[int, ToolResponse]]], names: FieldNames
) -> Iterator[Message]:
    yield message
    if not isinstance(message, AssistantMessage) or not message.tool_calls:
        return
    found, missing = list[ToolResponse](), list[str]()
    for call in message.tool_calls:
        if waiting := results.get(call.id):
            found.append(replace(waiting.popleft()[1], name=call.name))
        else:
            missing.append(call.id)
    if missing:
        raise BadRequest(f"tool calls without a result: {', '.join(missing)}", names.messages)
    yield ToolResponseMessage(tuple(found))


def turn_starts(messages: Sequence[Message]) -> list[int]:
    """The indexes at which turns start: below the instructions, and after each user message."""
    first = 1 if messages and isinstance(messages[0], SystemMessage) else 0
    return [first, *(index for index, each in enumerate(messages, 1) if isinstance(each, UserMessage))]


def check_question(sent: Sequence[Sent], messages: str) -> None:
    """Check the question: the newest message, if it is the user's."""
    index = len(sent) - 1
    while index > 0 and sent[index].role in SYSTEM_ROLES:
        index -= 1
    if index < 0 or sent[index].role != "user":
        return
    content, param = sent[index].content, f"{messages}[{index}].content"
    # Agents put a tool's screenshot into a message behind its result, and repeat the message for ever: never an error.
    if (
        isinstance(content, Sequence)
        and not isinstance(content, str)
        and (index == 0 or sent[index - 1].role not in ("tool", None))
    ):
        _require_readable(content, param)
    text = text_of(content)
    if "\x00" in text:
        raise BadRequest(f"{param}: contains a NUL character", param)
    if len(images_of(content)) > MAX_IMAGES:
        raise BadRequest(f"{param}: has more than {MAX_IMAGES} images", param)
    if not text.strip() and not images_of(content):
        raise BadRequest(f"{param}: must not be blank", param)


def _require_readable(parts: Sequence[Part], content: str) -> None:
    has_text = any((part.plain() or "").strip() for part in parts)
    for number, part in enumerate(parts):
        if part.plain() is None and part.image() is None and not (has_text and part.type in IMAGE_TYPES):
            param, kind = f"{content}[{number}]", part.type[:32]
            fault = "text is missing" if kind in TEXT_TYPES else f"{kind} is not supported; send {_READABLE}"
            raise BadRequest(f"{param}: {fault}", param)


def text_of(content: str | Sequence[Part] | None) -> str:
    """The text of a message; a note replaces what is neither text nor an image, because histories come again."""
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join([_text_or_note(part) for part in content if part.type not in _THOUGHTS and part.image() is None])


def images_of(content: str | Sequence[Part] | None) -> tuple[str, ...]:
    """The images of a message."""
    if content is None or isinstance(content, str):
        return ()
    return tuple([image for part in content if (image := part.image())])


def _text_or_note(part: Part) -> str:
    text = part.plain()
    return f"[{part.type[:32]} left out: send {_READABLE}]" if text is None else text


_READABLE = "text, or png, jpeg, gif and webp images by URL"
