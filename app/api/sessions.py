"""Sessions: conversations that a client names by an id, or lets the service name."""

import re
import secrets
from collections.abc import Sequence

from fastapi import Request, Response

from app.api.answers import answer_prompt
from app.api.browsers import refuse_unasked_get
from app.api.negotiation import AnswerForm
from app.api.state import service_state
from app.chat.advisors import Advisor
from app.errors import ValidationFailed
from app.tool_calling.context import CONVERSATION_ID

__all__ = ["SESSION_ID_PATTERN", "answer_in_session", "checked_session_id", "session_or_new"]

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


async def answer_in_session(
    request: Request,
    query: str,
    session: str,
    *,
    tools: Sequence[object] = (),
    advisors: Sequence[Advisor] = (),
    form: AnswerForm | None = None,
) -> Response:
    """Answer the next question of a conversation, in the form that the client accepts.

    Args:
        request: the HTTP request.
        query: the question.
        session: the conversation's id, checked.
        tools: what ``PromptSpec.tools`` takes.
        advisors: advisors beside the memory's.
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
    prompt = state.chat.prompt(query).tools(*tools).tool_context({CONVERSATION_ID: session})
    return await answer_prompt(request, prompt.advisors(state.memory_advisor, *advisors), form)
