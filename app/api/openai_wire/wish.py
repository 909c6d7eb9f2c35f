"""How one request is to be answered."""

import time
from collections.abc import Callable
from dataclasses import field
from random import getrandbits
from typing import Any

from app.api.answering.asked import Asked
from app.chat_models.base import ChatResponse
from app.immutable import immutable
from app.messages import Usage

__all__ = ["Wish", "call_documents", "consent_link", "finish_reason", "note_headers", "usage_document"]


@immutable
class Wish:
    """What the forms of an answer must know of its request."""

    model: str
    """As the client calls it."""
    theirs: frozenset[str] = frozenset()
    """The names of the tools that the client runs."""
    in_session: bool = False
    include_usage: bool = False
    page: Callable[[], str] = str
    """Gives the address of the service's own page, where a user consents who has no other way."""
    tells_progress: bool = False
    """Whether Open WebUI's page is told what the service's tools do."""
    identifier: str = field(default_factory=lambda: f"chatcmpl-{getrandbits(96):024x}")
    created: int = field(default_factory=lambda: int(time.time()))
    began: float = field(default_factory=time.perf_counter)


def call_documents(response: ChatResponse, theirs: frozenset[str]) -> list[dict[str, Any]]:
    """The calls that the client must run; those of the service are never among them, or the client would run them."""
    return [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments or "{}"}}
        for call in response.message.tool_calls
        if call.name in theirs
    ]


def finish_reason(response: ChatResponse, *, has_calls: bool) -> str:
    """Why the answer ended, in one of OpenAI's words."""
    if has_calls:
        return "tool_calls"
    reason = response.finish_reason
    return reason if reason == "length" or reason == "content_filter" else "stop"


def usage_document(usage: Usage) -> dict[str, Any]:
    """The tokens of all turns together."""
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }


def consent_link(asked: Asked, wish: Wish) -> str:
    """Where the user decides about an answer that waits, behind the words that say what waits; empty for any other."""
    return f"\n{wish.page()}?approval={asked.pending['id']}" if asked.pending else ""


def note_headers(asked: Asked, wish: Wish) -> None:
    """Put into the answer's headers what OpenAI's have; a conversation of one request has no name for the client."""
    asked.headers["openai-processing-ms"] = str(round((time.perf_counter() - wish.began) * 1000))
    if not wish.in_session:
        asked.headers.pop("X-Session-ID", None)
