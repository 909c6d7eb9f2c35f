"""The routes of background questions: accept one, show it, stream its events, and cancel it."""

import re
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Request, Response
from pydantic_core import to_json

from toolchat.errors import NotFound, StoreUnavailable, ToolchatError
from toolchat.service.access.principals import current_request_caller
from toolchat.service.api.background.records import BackgroundQuestion
from toolchat.service.api.background.runner import BackgroundRunner
from toolchat.service.api.dependencies import reject_prefetch, require_same_site
from toolchat.service.api.parameters import refuse_parameters
from toolchat.service.api.problems import problem, problems
from toolchat.service.api.responses.event_stream import EVENTS, EventStream
from toolchat.service.api.responses.formats import JsonDocument, json_response, negotiate
from toolchat.service.api.service import service_state

router = APIRouter(tags=["Chat"])

_EVENT_ID = re.compile(r"([0-9a-f]{32})\.(\d{1,4})\.(\d{1,6})")
_FORWARDED = ("host", "x-tenant-id", "x-session-id")
"""Headers of the accepted request that its answer needs. Keys are not stored: the principal is."""
_FORMS = (JsonDocument(), EVENTS)
_OWN_EVENTS = ("waiting", "cancelled", "failed")
"""Names of events that the answer itself does not have."""
_Identifier = Annotated[str, Path(description="The id of the question")]


async def accept(request: Request, path: str, body: Mapping[str, Any], **more: Any) -> BackgroundQuestion:
    """Accept a question, which is answered by a ``POST`` of a body to a path."""
    reject_prefetch(request)
    caller = current_request_caller()
    given = tuple((name, request.headers[name]) for name in _FORWARDED if name in request.headers)
    question = BackgroundQuestion(
        path,
        given,
        caller.principal,
        caller.client_key,
        request.app.state.access.own_address(request.scope),
        body.get("sessionId", ""),
        body.get("userInput", ""),
        **more,
    )
    await background(request).accept(question, to_json(body))
    return question


def accepted(request: Request, question: BackgroundQuestion) -> Response:
    """The answer to an accepted question: where to find it."""
    headers = {"Location": _location(request, question), "Preference-Applied": "respond-async", "Retry-After": "1"}
    return json_response(_document(question, None), 202, headers)


def stream(
    request: Request, question: BackgroundQuestion, after: tuple[int, int] = (0, -1), *, is_plain: bool = False
) -> Response:
    """The events of a question; plain ones are sent as they are, in a protocol with numbers of its own."""
    events = _StoredEvents(request, question, after, is_plain)
    if not is_plain:
        events.headers["Location"] = _location(request, question)
    return events


async def resume(request: Request, identifier: str = "") -> Response | None:
    """The events behind ``Last-Event-ID``; ``None`` if that is not an event of a background question."""
    match = _EVENT_ID.fullmatch(request.headers.get("last-event-id", ""))
    if match is None or identifier not in ("", match[1]):
        return None
    return stream(request, await _found(request, match[1]), (int(match[2]), int(match[3])))


@router.get(
    "/questions/{identifier}",
    response_class=Response,
    dependencies=[Depends(refuse_parameters)],
    responses=problems(NotFound, StoreUnavailable),
    summary="Show a background question",
)
async def show(request: Request, identifier: _Identifier) -> Response:
    """Show a background question and, once it is completed, its answer.

    With `Accept: text/event-stream` its events are streamed as they happen; `Last-Event-ID` continues after an event.
    """
    question = await _found(request, identifier)
    if negotiate(request, _FORMS) is _FORMS[1]:
        return await resume(request, identifier) or stream(request, question)
    return await _shown(background(request), question)


@router.delete(
    "/questions/{identifier}",
    response_class=Response,
    dependencies=[Depends(require_same_site), Depends(refuse_parameters)],
    responses=problems(NotFound, StoreUnavailable) | {204: {"description": "A finished question was deleted"}},
    summary="Cancel a background question, or delete a finished one",
)
async def cancel(request: Request, identifier: _Identifier) -> Response:
    """Cancel a question that has not finished, and show its final status; delete a finished one with its answer (204).

    A question that is about to end may still become `completed`.
    """
    question, runner = await _found(request, identifier), background(request)
    if not question.is_finished:
        return await _shown(runner, await runner.cancel(question))
    await runner.records.delete(question)
    return Response(status_code=204)


async def _shown(runner: BackgroundRunner, question: BackgroundQuestion) -> Response:
    waiting = {} if question.is_finished else {"Retry-After": "1"}
    return json_response(_document(question, await runner.records.result(question)), headers=waiting)


class _StoredEvents(EventStream):
    """Sends the stored events of a question, and waits for those that are not there yet."""

    def __init__(self, request: Request, question: BackgroundQuestion, after: tuple[int, int], is_plain: bool) -> None:
        super().__init__("text/event-stream; charset=utf-8", service_state(request).tuning.stream_keep_alive)
        self.headers["X-Accel-Buffering"] = "no"
        self._records, self._question, self._after = background(request).records, question, after
        self._is_plain = is_plain
        self._begun = max(after[0], 1)

    async def produce(self) -> bytes:
        async for events in self._records.events(self._question, self._after):
            await self.write("".join([self._encoded(*each) for each in events]).encode())
        return b""

    def _encoded(self, attempt: int, number: int, event: tuple[str, str]) -> str:
        name, data = event
        if self._is_plain:
            return "" if name in _OWN_EVENTS else _encoded(name, data)
        # With a new try, what was sent of the answer so far is void.
        restarted = _encoded("restarted", f'{{"try":{attempt}}}') if attempt != self._begun else ""
        self._begun = attempt
        # A failure without events of its own, such as a withdrawn key, ends the stream like any other error.
        shown = "error" if name == "failed" else name
        return restarted + _encoded(shown, data, f"id: {self._question.identifier}.{attempt}.{number}\n")

    def on_error(self, error: ToolchatError) -> bytes:
        return _encoded("error", to_json(problem(error, self._question.identifier)).decode()).encode()


def _encoded(name: str, data: str, identifier: str = "") -> str:
    return f"{identifier}event: {name}\ndata: {data}\n\n"


def _location(request: Request, question: BackgroundQuestion) -> str:
    return f"{request.scope.get('root_path', '')}/questions/{question.identifier}"


def _document(question: BackgroundQuestion, result: Any) -> dict[str, Any]:
    document: dict[str, Any] = {
        "id": question.identifier,
        "status": question.state,
        "created_at": int(question.created_at),
        "tries": question.tries,
    }
    if question.session:
        document |= {"session_id": question.session, "question": question.asked}
    if question.state in ("completed", "failed"):
        document["answer" if question.state == "completed" else "error"] = result
    return document


async def _found(request: Request, identifier: str) -> BackgroundQuestion:
    question = await background(request).records.find(identifier, current_request_caller().principal)
    if question is None:
        raise NotFound("no background question has this id; answers are kept for ten minutes")
    return question


def background(request: Request) -> BackgroundRunner:
    """The runner of this process."""
    found: BackgroundRunner = request.app.state.background
    return found
