"""Sessions: conversations that a client names by an id, or lets the service name."""

import difflib
import re
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import Request, Response

from app.api.answering import answer_prompt
from app.api.answering.format import AnswerFormat
from app.api.cross_site import refuse_unasked_get
from app.api.service import service_state
from app.chat.advisors import Advisor
from app.errors import ValidationFailed
from app.tool_calling.context import CONVERSATION_ID

__all__ = [
    "SESSION_ID_PATTERN",
    "answer_in_session",
    "checked_session_id",
    "refuse_unknown_parameters",
    "session_or_new",
]

SESSION_ID_PATTERN = "[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
"""What a session id may be; it is part of paths and keys."""

_SESSION_ID = re.compile(SESSION_ID_PATTERN)
_RESERVED = ("chat", "stream")
_ONCE = ("sessionId", "userInput", "query")


def checked_session_id(given: str) -> str:
    """A session id as a client gave it.

    Raises:
        ValidationFailed: it has other characters, is too long, or is the name of a route.
    """
    if given in _RESERVED:
        raise ValidationFailed(f"sessionId: {given} is reserved")
    if not _SESSION_ID.fullmatch(given):
        raise ValidationFailed("sessionId: 1 to 64 of A-Z a-z 0-9 . _ - that begin with a letter or a digit")
    return given


def session_or_new(given: str) -> str:
    """The session that is meant; without an id a new one, of 128 random bits; raises as :func:`checked_session_id`."""
    return checked_session_id(given) if given else secrets.token_hex(16)


async def refuse_unknown_parameters(request: Request) -> None:
    """Let a request pass whose parameters the route knows; a dependency of routes that belong to a session.

    Elsewhere an unknown parameter is left alone. Here a mistyped ``session_id`` would begin a new conversation with
    every question, and nobody would know why the model remembers nothing.

    Raises:
        ValidationFailed: one is unknown; the detail names the nearest one that there is.
    """
    operation = request.app.openapi()["paths"][request.scope["route"].path_format][request.method.lower()]
    known = [each["name"] for each in operation.get("parameters", ()) if each["in"] == "query"]
    for name in request.query_params:
        if name not in known:
            near = difflib.get_close_matches(name.lower().replace("_", ""), known, n=1, cutoff=0.4)
            meant = f"; is {near[0]} meant?" if near else f"; known: {', '.join(known) or 'none'}"
            raise ValidationFailed(f"{name[:64]}: there is no such parameter{meant}")


async def answer_in_session(
    request: Request,
    query: str,
    session: str,
    *,
    tools: Sequence[object] = (),
    advisors: Sequence[Advisor] = (),
    context: Mapping[str, Any] | None = None,
    form: AnswerFormat | None = None,
) -> Response:
    """Answer the next question of a conversation, in the form that the client accepts.

    Args:
        request: the HTTP request.
        query: the question.
        session: the conversation's id, checked.
        tools: what ``PromptSpec.tools`` takes.
        advisors: advisors beside the memory's.
        context: values for tools and advisors beside the conversation's id.
        form: the only form that the route gives, if it gives only one.

    Raises:
        CrossSite: a browser asks on behalf of another site, or looks ahead.
        ValidationFailed: a parameter is given more than once, so that nobody knows which one is meant.
        ToolchatError: as ``answer_prompt``; also ``SessionBusy`` and ``StoreUnavailable``.
    """
    refuse_unasked_get(request)
    for name in _ONCE:
        if len(request.query_params.getlist(name)) > 1:
            raise ValidationFailed(f"{name}: given more than once")
    state = service_state(request)
    prompt = state.chat.prompt(query).tools(*tools).tool_context({**(context or {}), CONVERSATION_ID: session})
    return await answer_prompt(request, prompt.advisors(state.memory_advisor, *advisors), form)
