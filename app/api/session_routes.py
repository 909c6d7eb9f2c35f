"""Chat with a session: questions that belong together, with every tool of the service."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response

from app.api.chat_routes import ANSWER_RESPONSES, MAX_QUERY_CHARS
from app.api.negotiation import AnswerForm
from app.api.problems import problems
from app.api.schemas import Conversation
from app.api.sessions import answer_in_session, checked_session_id, session_or_new
from app.api.state import service_state
from app.chat.message_records import to_records
from app.errors import CrossSite, NotFound, SessionBusy, StoreUnavailable, ValidationFailed

__all__ = ["SESSION_RESPONSES", "Question", "SessionId", "SessionPath", "router"]

router = APIRouter(tags=["Chat"])

_SESSION_HEADER = {"X-Session-ID": {"description": "The session, to go on with", "schema": {"type": "string"}}}
SESSION_RESPONSES: dict[int | str, dict[str, Any]] = {
    **ANSWER_RESPONSES,
    200: ANSWER_RESPONSES[200] | {"headers": ANSWER_RESPONSES[200]["headers"] | _SESSION_HEADER},
    **problems(CrossSite, SessionBusy),
}
"""Every status with which a question in a session can be answered."""

_STREAM_RESPONSES: dict[int | str, dict[str, Any]] = {
    **SESSION_RESPONSES,
    200: {
        "description": "The answer as server-sent events",
        "content": {AnswerForm.EVENTS.value: ANSWER_RESPONSES[200]["content"][AnswerForm.EVENTS.value]},
        "headers": SESSION_RESPONSES[200]["headers"],
    },
}

_EXAMPLE = "北京现在几点？"
Question = Annotated[
    str,
    Query(
        max_length=MAX_QUERY_CHARS,
        description="The question",
        openapi_examples={"中文": {"value": _EXAMPLE}, "English": {"value": "What time is it in London?"}},
        # Swagger UI fills a field that has a default from its schema's example alone.
        json_schema_extra={"example": _EXAMPLE},
    ),
]
SessionId = Annotated[
    str,
    Query(alias="sessionId", description="The conversation that the question belongs to. None or empty: a new one"),
]
SessionPath = Annotated[str, Path(alias="sessionId", description="The conversation's id")]
_Query = Annotated[str, Query(max_length=MAX_QUERY_CHARS, description="The same as `userInput`")]
_Tools = Annotated[
    list[str] | None,
    Query(description="Names of the tools to offer, separated by commas; empty: none; missing: all", max_length=50),
]


@router.get("/chat", response_class=Response, responses=SESSION_RESPONSES, summary="Ask in a session")
async def chat(
    request: Request, userInput: Question = "", query: _Query = "", sessionId: SessionId = "", tools: _Tools = None
) -> Response:
    """Answer the next question of a conversation; the model is given the turns before.

    Questions of one session are answered one after the other. The session's id is in the header `X-Session-ID`.
    """
    return await _ask(request, _question(userInput, query), sessionId, tools)


@router.get(
    "/chat/stream",
    response_class=Response,
    responses=_STREAM_RESPONSES,
    summary="Ask in a session, answered as server-sent events",
)
async def chat_stream(
    request: Request, userInput: Question = "", query: _Query = "", sessionId: SessionId = "", tools: _Tools = None
) -> Response:
    """Answer as `/chat` does, always as server-sent events, live from the first word through every tool call.

    A browser that reconnects (`Last-Event-ID`) gets 204 and stops; the model is not asked twice.
    """
    return await _ask(request, _question(userInput, query), sessionId, tools, AnswerForm.EVENTS)


@router.get(
    "/chat/{sessionId}",
    response_model=Conversation,
    responses=problems(NotFound, ValidationFailed, StoreUnavailable),
    summary="Show a conversation",
)
async def show(request: Request, session: SessionPath) -> Response:
    """List what is kept of a conversation, oldest first; the model is given as much of it as fits beside a question."""
    turns = await service_state(request).memory.turns(checked_session_id(session))
    if not turns:
        raise NotFound("no conversation is kept under this id")
    messages = [record for turn in turns for record in to_records(turn)]
    document = Conversation(session_id=session, turns=len(turns), messages=messages)
    return Response(
        document.model_dump_json(exclude_unset=True),
        media_type="application/json",
        headers={"Cache-Control": "no-store"},
    )


@router.delete(
    "/chat/{sessionId}",
    status_code=204,
    responses=problems(SessionBusy, ValidationFailed, StoreUnavailable),
    summary="Forget a conversation",
)
async def forget(request: Request, session: SessionPath) -> Response:
    """Forget everything that is kept of a conversation, whether or not there was anything; waits for a running turn."""
    state = service_state(request)
    await state.memory.forget(checked_session_id(session), *state.tools.state_keys(session))
    state.approvals.forget(session)
    return Response(status_code=204)


async def _ask(
    request: Request, question: str, session: str, tools: list[str] | None, form: AnswerForm | None = None
) -> Response:
    chosen = None if tools is None else [name.strip() for part in tools for name in part.split(",") if name.strip()]
    offered, advisors = service_state(request).tools.for_conversation(chosen)
    session = session_or_new(session)
    return await answer_in_session(request, question, session, tools=offered, advisors=advisors, form=form)


def _question(user_input: str, query: str) -> str:
    if user_input and query and user_input != query:
        raise ValidationFailed("userInput: is another question than query; give one of them")
    question = user_input or query
    if not question.strip():
        raise ValidationFailed("userInput: is missing or blank")
    return question
