"""Chat with a session: questions that belong together, with every tool of the service."""

from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Request, Response
from pydantic_core import to_json

from app.api.answer_responses import SESSION_RESPONSES, STREAM_RESPONSES
from app.api.answering import EVENTS
from app.api.answering.format import AnswerFormat
from app.api.parameters import refuse_parameters
from app.api.problems import problems
from app.api.questions import QuestionRoute, question_routes
from app.api.schemas import Conversation
from app.api.service import Service, service_state
from app.api.sessions import (
    SESSION_ID_PATTERN,
    SessionParameters,
    answer_in_session,
    conversation_of,
)
from app.chat.call_limit_advisor import calls_key
from app.chat.memory import Turn
from app.chat.message_records import to_records
from app.chat.trace import shown_trace
from app.errors import NotFound, SessionBusy, StoreUnavailable, ValidationFailed

__all__ = ["SessionPath", "add_routes"]

router = APIRouter(tags=["Chat"])

_PARAMETERS = SessionParameters({"中文": "北京现在几点？", "English": "What time is it in London?"})
SessionPath = Annotated[
    str,
    # Documented only: the check has words of its own.
    Path(
        alias="sessionId", description="The conversation's id", json_schema_extra={"pattern": f"^{SESSION_ID_PATTERN}$"}
    ),
]


async def chat(request: Request) -> Response:
    """Answer the next question of a conversation; the model is given the turns before.

    Questions of one session are answered one after the other. The session's id is in the header `X-Session-ID`.
    """
    return await _ask(request)


async def chat_stream(request: Request) -> Response:
    """Answer as `/chat` does, always as server-sent events, live from the first word through every tool call.

    A browser that reconnects (`Last-Event-ID`) gets 204 and stops; the model is not asked twice.
    """
    return await _ask(request, EVENTS)


@router.get(
    "/chat/{sessionId}",
    response_model=Conversation,
    dependencies=[Depends(refuse_parameters)],
    responses=problems(NotFound, ValidationFailed, StoreUnavailable),
    summary="Show a conversation",
)
async def show(service: Service, session: SessionPath) -> Response:
    """List what is kept of a conversation, oldest first; the model is given as much of it as fits beside a question.

    The message that ends a turn has what became of it: `tool_calls`, `usage`, `duration_ms`, `model`. The model is not
    given that again.
    """
    turns = await service.memory.turns(conversation_of(session))
    if not turns:
        raise NotFound("no conversation is kept under this id")
    document = {
        "session_id": session,
        "turns": len(turns),
        "messages": [record for turn in turns for record in _shown(turn)],
    }
    body = to_json(document, inf_nan_mode="strings")
    return Response(body, media_type="application/json", headers={"Cache-Control": "no-store"})


@router.delete(
    "/chat/{sessionId}",
    status_code=204,
    dependencies=[Depends(refuse_parameters)],
    responses=problems(SessionBusy, ValidationFailed, StoreUnavailable),
    summary="Forget a conversation",
)
async def forget(service: Service, session: SessionPath) -> Response:
    """Forget everything that is kept of a conversation, whether or not there was anything; waits for a running turn."""
    conversation = conversation_of(session)
    forget_approvals = partial(service.approvals.forget, conversation)
    kept = (*service.tools.state_keys(conversation), calls_key(conversation))
    await service.memory.forget(conversation, *kept, then=forget_approvals)
    return Response(status_code=204)


def add_routes(added: APIRouter) -> None:
    """Add every route of sessions."""
    asked = partial(
        question_routes, added, parameters=_PARAMETERS, tags=router.tags, route_class_override=QuestionRoute
    )
    asked(path="/chat", responses=SESSION_RESPONSES, summary="Ask in a session")(chat)
    streamed = "Ask in a session, answered as server-sent events"
    asked(path="/chat/stream", responses=STREAM_RESPONSES, summary=streamed)(chat_stream)
    added.include_router(router)


def _shown(turn: Turn) -> list[dict[str, Any]]:
    *records, answer = to_records(turn.messages)
    return [*records, answer | shown_trace(turn.trace)]


async def _ask(request: Request, form: AnswerFormat | None = None) -> Response:
    question = await _PARAMETERS.read(request)
    offered, advisors = service_state(request).tools.for_conversation(question.tools)
    return await answer_in_session(request, question, tools=offered, advisors=advisors, form=form)
