"""Chat with a session: questions that belong together, with every tool of the service."""

from dataclasses import dataclass
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Request, Response

from app.api.answer_responses import SESSION_RESPONSES, STREAM_RESPONSES
from app.api.answering import EVENTS
from app.api.answering.format import AnswerFormat
from app.api.problems import problems
from app.api.questions import MAX_QUERY_CHARS
from app.api.schemas import Conversation
from app.api.service import Service, ServiceState
from app.api.sessions import answer_in_session, checked_session_id, refuse_unknown_parameters, session_or_new
from app.chat.call_limit_advisor import calls_key
from app.chat.message_records import to_records
from app.errors import NotFound, SessionBusy, StoreUnavailable, ValidationFailed

__all__ = ["SessionId", "SessionPath", "UserInput", "router"]

router = APIRouter(tags=["Chat"], dependencies=[Depends(refuse_unknown_parameters)])

_EXAMPLE = "北京现在几点？"
UserInput = Annotated[
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


@dataclass(frozen=True, slots=True)
class _Wish:
    """What the parameters of a question in a session say."""

    question: str
    session: str
    tools: list[str] | None


async def _wish(
    userInput: UserInput = "", query: _Query = "", sessionId: SessionId = "", tools: _Tools = None
) -> _Wish:
    if userInput and query and userInput != query:
        raise ValidationFailed("userInput: is another question than query; give one of them")
    question = userInput or query
    if not question.strip():
        raise ValidationFailed("userInput: is missing or blank")
    chosen = None if tools is None else [name.strip() for part in tools for name in part.split(",") if name.strip()]
    return _Wish(question, session_or_new(sessionId), chosen)


_Wished = Annotated[_Wish, Depends(_wish)]


@router.get("/chat", response_class=Response, responses=SESSION_RESPONSES, summary="Ask in a session")
async def chat(request: Request, service: Service, wish: _Wished) -> Response:
    """Answer the next question of a conversation; the model is given the turns before.

    Questions of one session are answered one after the other. The session's id is in the header `X-Session-ID`.
    """
    return await _ask(request, service, wish)


@router.get(
    "/chat/stream",
    response_class=Response,
    responses=STREAM_RESPONSES,
    summary="Ask in a session, answered as server-sent events",
)
async def chat_stream(request: Request, service: Service, wish: _Wished) -> Response:
    """Answer as `/chat` does, always as server-sent events, live from the first word through every tool call.

    A browser that reconnects (`Last-Event-ID`) gets 204 and stops; the model is not asked twice.
    """
    return await _ask(request, service, wish, EVENTS)


@router.get(
    "/chat/{sessionId}",
    response_model=Conversation,
    responses=problems(NotFound, ValidationFailed, StoreUnavailable),
    summary="Show a conversation",
)
async def show(service: Service, session: SessionPath) -> Response:
    """List what is kept of a conversation, oldest first; the model is given as much of it as fits beside a question."""
    turns = await service.memory.turns(checked_session_id(session))
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
async def forget(service: Service, session: SessionPath) -> Response:
    """Forget everything that is kept of a conversation, whether or not there was anything; waits for a running turn."""
    forget_approvals = partial(service.approvals.forget, session)
    kept = (*service.tools.state_keys(session), calls_key(session))
    await service.memory.forget(checked_session_id(session), *kept, then=forget_approvals)
    return Response(status_code=204)


async def _ask(request: Request, service: ServiceState, wish: _Wish, form: AnswerFormat | None = None) -> Response:
    offered, advisors = service.tools.for_conversation(wish.tools)
    return await answer_in_session(request, wish.question, wish.session, tools=offered, advisors=advisors, form=form)
