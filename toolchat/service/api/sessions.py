"""Sessions: their ids, their parameters, the fields of a stored conversation, and the routes of ``/chat``."""

import re
import secrets
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request, Response

from toolchat.chat.advisors.base import Advisor
from toolchat.chat.advisors.memory import NEW_CONVERSATION, REPLACED_TURNS
from toolchat.chat.client import PromptSpec
from toolchat.chat.session_records import parse_turn_summary, to_records
from toolchat.chat.turns import Turn
from toolchat.errors import NotFound, SessionBusy, StoreUnavailable, ValidationFailed
from toolchat.messages import Message, SystemMessage, UserMessage, immutable
from toolchat.service.access.hosts import headers
from toolchat.service.access.principals import current_request_caller
from toolchat.service.api.background.routes import accept, accepted, background, resume, stream
from toolchat.service.api.dependencies import scoped_key, session_of
from toolchat.service.api.fast_router import MAX_QUERY_CHARS, DirectRoute, question_routes
from toolchat.service.api.images import IMAGES_DESCRIPTION, IMAGES_SCHEMA, checked_images
from toolchat.service.api.parameters import NOT_BLANK, NOT_BLANK_DESCRIPTION, Parameter, Parameters, refuse_parameters
from toolchat.service.api.personal_data import delete_conversation
from toolchat.service.api.problems import problems
from toolchat.service.api.responses.answers import answer_prompt
from toolchat.service.api.responses.event_stream import EVENTS
from toolchat.service.api.responses.formats import AnswerFormat, json_response
from toolchat.service.api.schemas import SESSION_RESPONSES, STREAM_RESPONSES, Conversation, SessionEntry, SessionTurns
from toolchat.service.api.service import Service, ServiceState, service_state
from toolchat.tool_calling.context import CONVERSATION_ID

SESSION_ID_PATTERN = "(?!(?:chat|stream)$)[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
"""The pattern of session ids; they are part of paths, in which some names are reserved, and of stored keys."""

MAX_SESSIONS = 100
"""Sessions that are listed for a key, the newest; others can still be used by their ids."""
_SESSION_ID = re.compile(SESSION_ID_PATTERN)
_RULE = "must be 1-64 characters of A-Z a-z 0-9 . _ -, starting with a letter or a digit"
_RESERVED = ("chat", "stream")
_QUESTION = {"type": "string", "maxLength": MAX_QUERY_CHARS, **NOT_BLANK}
SESSION_ID: Mapping[str, Any] = {"type": "string", "pattern": f"^({SESSION_ID_PATTERN})?$"}
_SESSION = Parameter("sessionId", SESSION_ID, "The session of the question; missing or empty: a new one")
_REPLACED = Parameter(
    "replaceTurns",
    {"type": "integer", "minimum": 0, "maximum": 1000},
    "Number of the session's newest turns that this question and its answer replace",
)
_TOOLS = Parameter(
    "tools",
    {"type": "array", "items": {"type": "string"}, "maxItems": 50},
    "Names of the tools to offer, separated by commas in a URL; empty: none; missing: all",
)
_IMAGES = Parameter("images", IMAGES_SCHEMA, IMAGES_DESCRIPTION)


def lists_of(conversation: str) -> tuple[str, ...]:
    """The list of its key's sessions that a conversation is in; anonymous clients share sessions, and have no list."""
    owner = conversation.rpartition("/")[0]
    return (f"sessions:{owner}",) if owner else ()


def conversation_of(given: str, field: str = "sessionId") -> str:
    """The conversation id of a session id, scoped to the current principal; ``field`` names it in errors."""
    if given in _RESERVED:
        raise ValidationFailed(f"{field}: {given} is reserved")
    if not _SESSION_ID.fullmatch(given):
        raise ValidationFailed(f"{field}: {_RULE}")
    return scoped_key(given)


def conversation_or_new(given: str) -> str:
    """As :func:`conversation_of`; an empty id becomes a new one of 128 random bits."""
    return conversation_of(given or secrets.token_hex(16))


SESSION_HEADER = Parameter(
    "X-Session-ID",
    SESSION_ID,
    "The session whose conversation the service stores; without it the messages are the conversation",
).documented("header")
"""The header by which a request with a whole conversation can use a session instead; for OpenAPI."""


def conversation_by_header(request: Request) -> str:
    """The conversation id of ``X-Session-ID``; empty without it; raises as :func:`conversation_of`."""
    given = headers(request.scope, b"x-session-id")
    if len(given) > 1:
        raise ValidationFailed("X-Session-ID: given more than once")
    return conversation_of(given[0], "X-Session-ID") if given and given[0] else ""


def last_turn(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The system messages, the last question and everything after it; the session stores the earlier messages."""
    begin = max((place for place, each in enumerate(messages) if isinstance(each, UserMessage)), default=0)
    return (*(each for each in messages[:begin] if isinstance(each, SystemMessage)), *messages[begin:])


def conversation_prompt(
    service: ServiceState,
    message: str | Sequence[Message],
    conversation: str,
    *,
    images: Sequence[str] = (),
    tools: Sequence[object] = (),
    advisors: Sequence[Advisor] = (),
    context: Mapping[str, Any] | None = None,
) -> PromptSpec:
    """Put together the prompt for the next turn: messages, tools, memory, advisors and the conversation's id."""
    message = message if isinstance(message, str) or not conversation else last_turn(message)
    prompt = service.chat.prompt(message, images)
    if conversation:
        advisors = (service.memory_advisor, *advisors)
    elif advisors:
        # Advisors of tools store state under a conversation; this one lasts for one request.
        conversation = conversation_or_new("")
    values = {**(context or {}), CONVERSATION_ID: conversation} if conversation else context
    prompt = prompt.tools(tools).advisors(*advisors) if advisors else prompt.tools(tools)
    return prompt.tool_context(values) if values else prompt


@immutable
class SessionQuestion:
    """A question in a session."""

    text: str
    conversation: str
    """See :func:`conversation_of`."""
    tools: Sequence[str] | None = None
    """Names of the tools to offer; ``None``: all."""
    replaced_turns: int = 0
    """How many of the session's newest turns it replaces."""
    is_new: bool = False
    """Whether the client has named no session."""
    images: tuple[str, ...] = ()
    """Data URLs."""


class SessionParameters(Parameters):
    """The parameters of a route that answers in a session: ``userInput`` or ``query``, ``sessionId``, and ``tools``.

    Args:
        examples: questions for the documentation, by label.
        default: the question if none is sent; without a default a question is required.
        choosing: whether the client can choose the tools.
        images: whether the body of a POST may have images.
    """

    responses = SESSION_RESPONSES

    def __init__(
        self, examples: Mapping[str, str], default: str = "", *, choosing: bool = True, images: bool = False
    ) -> None:
        self._default = default
        # Only one name has examples: Swagger UI fills in both, and the question would be sent twice.
        names = ("query", "userInput") if default else ("userInput", "query")
        schema = _QUESTION | ({"default": default} if default else {})
        description = f"The question. {NOT_BLANK_DESCRIPTION}.{' Missing or empty: the default.' if default else ''}"
        first = Parameter(names[0], schema, description, examples)
        alias = Parameter(names[1], _QUESTION, f"An alias of `{names[0]}`")
        given = [{"required": [name], "properties": {name: {"minLength": 1}}} for name in names]
        needed = {} if default else {"anyOf": given}
        rules = {"not": {"allOf": given}, **needed}
        known = (first, alias, _SESSION, _REPLACED, *([_TOOLS] if choosing else []))
        super().__init__(*known, of_body=[_IMAGES] if images else [], rules=rules)

    async def read(self, request: Request) -> SessionQuestion:
        """The question of a request; raises as :meth:`QuestionParameter.read`, and if it is ambiguous or missing."""
        given = await self.values(request)
        one, other = given.get("userInput", ""), given.get("query", "")
        if one and other and one != other:
            raise ValidationFailed("userInput: userInput and query differ; send one of them")
        question = one or other or self._default
        if not question:
            raise ValidationFailed("query: is missing or blank")
        parts = [part for text in given.get("tools", ()) for part in text.split(",")]
        tools = [part.strip() for part in parts if part.strip()] if "tools" in given else None
        conversation = conversation_or_new(given.get("sessionId", ""))
        is_new = not given.get("sessionId")
        images = checked_images(given["images"], service_state(request)) if "images" in given else ()
        return SessionQuestion(question, conversation, tools, given.get("replaceTurns", 0), is_new, images)


async def answer_in_session(
    request: Request,
    question: SessionQuestion,
    path: str,
    *,
    tools: Sequence[object] = (),
    advisors: Sequence[Advisor] = (),
    context: Mapping[str, Any] | None = None,
    form: AnswerFormat | None = None,
) -> Response:
    """Answer the next question of a session, in the format that the client accepts.

    A ``POST`` with ``Prefer: respond-async`` is answered in the background, where it is posted to ``path`` again; a
    route with a single format gives it as ``form``. The ``tools`` are as ``PromptSpec.tools`` takes them; ``advisors``
    and ``context`` are in addition to the memory and the conversation's id.

    Raises:
        CrossSite: a page of another site sent the request, or a browser prefetches it.
        ToolchatError: as ``answer_prompt``; also ``SessionBusy`` and ``StoreUnavailable``.
    """
    if request.method == "POST" and "respond-async" in request.headers.get("prefer", "").lower():
        accepted_question = await accept(request, path, _posted(question))
        is_stream = form is EVENTS or EVENTS.media_type in request.headers.get("accept", "")
        return stream(request, accepted_question) if is_stream else accepted(request, accepted_question)
    service = service_state(request)
    prompt = conversation_prompt(
        service,
        question.text,
        question.conversation,
        images=question.images,
        tools=tools,
        advisors=advisors,
        context={**(context or {}), REPLACED_TURNS: question.replaced_turns, NEW_CONVERSATION: question.is_new},
    )
    return await answer_prompt(request, prompt, form)


router = APIRouter(tags=["Chat"])

_PARAMETERS = SessionParameters({"中文": "北京现在几点？", "English": "What time is it in London?"}, images=True)
SessionPath = Annotated[
    str,
    # For the documentation only: conversation_of has a clearer message.
    Path(alias="sessionId", description="The session id", json_schema_extra={"pattern": f"^{SESSION_ID_PATTERN}$"}),
]
"""The session id in a path; :func:`conversation_of` checks it."""


async def chat(request: Request) -> Response:
    """Answer the next question of a session; the model receives the earlier turns.

    The questions of a session are answered one after another. The response header `X-Session-ID` has the session's id.
    A `POST` with `Prefer: respond-async` gets 202, and is answered in the background: see `/questions/{identifier}`.
    """
    return await _ask(request)


async def chat_stream(request: Request) -> Response:
    """Answer as `/chat`, but always as server-sent events, while the model writes and tools run.

    If a browser reconnects (`Last-Event-ID`), it gets the remaining events of a background question. For any other
    question it gets 204, so that the model does not run twice.
    """
    return (await resume(request) if "last-event-id" in request.headers else None) or await _ask(request, EVENTS)


@router.get(
    "/sessions",
    response_model=list[SessionEntry],
    dependencies=[Depends(refuse_parameters)],
    responses=problems(StoreUnavailable, ValidationFailed),
    summary="List sessions",
)
async def sessions(request: Request, service: Service) -> Response:
    """List the newest sessions of the client's key, the last used first; empty without a key.

    `running` is the id of a question that is answered in the background: see `/questions/{identifier}`. `approval` is
    the id of an answer that waits for approval: see `/approvals/{identifier}`.
    """
    owner = current_request_caller().principal.owner
    running = background(request).of_sessions(owner)
    found = [each for name in lists_of(owner) for each in await service.memory.newest(name, MAX_SESSIONS)]
    shown = []
    for name, stored, at in found:
        session = session_of(name)
        entry = {"session_id": session, "title": stored.title, "updated_at": at}
        if session in running:
            entry["running"] = running[session]
        if stored.approval and await service.approvals.is_waiting(stored.approval):
            entry["approval"] = stored.approval
        shown.append(entry)
    return json_response(shown)


@router.get(
    "/sessions/{sessionId}",
    response_model=SessionTurns,
    responses=problems(NotFound, ValidationFailed, StoreUnavailable),
    summary="List the turns of a session",
)
async def turns(
    service: Service,
    session: SessionPath,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
    before: Annotated[str, Query(pattern="^[0-9]{0,9}$", description="`next` of the page before")] = "",
) -> Response:
    """List all stored turns of a session, the newest first, and say which of them the model receives.

    The messages are those of `/chat/{sessionId}`; the `tool_calls` of a turn say who approved each, in `approved_by`.
    """
    conversation = conversation_of(session)
    found, start, page = await service.memory.page(conversation, limit, int(before) if before else None)
    if not found.turns and not await service.approvals.waits_in(conversation):
        raise NotFound("no conversation is stored under this id")
    shown = [
        {"turn": place, "is_in_window": place >= found.first, "messages": _shown(turn)}
        for place, turn in enumerate(page, start)
    ]
    document = {"session_id": session, "title": found.title, "total": found.turns, "turns": shown[::-1]}
    return json_response(document | {"next": str(start) if start else ""})


@router.get(
    "/chat/{sessionId}",
    response_model=Conversation,
    dependencies=[Depends(refuse_parameters)],
    responses=problems(NotFound, ValidationFailed, StoreUnavailable),
    summary="Show a conversation",
)
async def show(service: Service, session: SessionPath) -> Response:
    """List the stored messages of a conversation, oldest first.

    The last message of a turn carries its `tool_calls`, `usage`, `duration_ms` and `model`, which are not sent to the
    model again.
    """
    conversation = conversation_of(session)
    turns = await service.memory.turns(conversation)
    if not turns and not await service.approvals.waits_in(conversation):
        raise NotFound("no conversation is stored under this id")
    messages = [record for turn in turns for record in _shown(turn)]
    return json_response({"session_id": session, "turns": len(turns), "messages": messages})


@router.delete(
    "/chat/{sessionId}",
    status_code=204,
    dependencies=[Depends(refuse_parameters)],
    responses=problems(SessionBusy, ValidationFailed, StoreUnavailable),
    summary="Delete a conversation",
)
async def forget(service: Service, session: SessionPath) -> Response:
    """Delete a conversation and everything stored with it, after its running turn; 204 even if it does not exist.

    Its questions in the background are cancelled.
    """
    await delete_conversation(service.store, service.memory, conversation_of(session))
    return Response(status_code=204)


def add_routes(added: APIRouter) -> None:
    asked = partial(question_routes, added, parameters=_PARAMETERS, tags=router.tags, route_class_override=DirectRoute)
    asked(path="/chat", summary="Ask in a session")(chat)
    streamed = "Ask in a session, answered as server-sent events"
    asked(path="/chat/stream", responses=STREAM_RESPONSES, summary=streamed)(chat_stream)
    added.include_router(router)


def _shown(turn: Turn) -> list[dict[str, Any]]:
    *records, answer = to_records(turn.messages)
    return [*records, answer | parse_turn_summary(turn.summary)]


async def _ask(request: Request, form: AnswerFormat | None = None) -> Response:
    question = await _PARAMETERS.read(request)
    offered, advisors = service_state(request).tools.for_conversation(question.tools)
    return await answer_in_session(request, question, "/chat", tools=offered, advisors=advisors, form=form)


def _posted(question: SessionQuestion) -> dict[str, Any]:
    """The JSON body of a question, with its session's id even if that is new."""
    body = {"userInput": question.text, "sessionId": session_of(question.conversation)}
    optional = {"tools": question.tools, "images": question.images or None, "replaceTurns": question.replaced_turns}
    return body | {name: value for name, value in optional.items() if value is not None}
