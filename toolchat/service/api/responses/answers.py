"""Answer a question in the format that the client accepts."""

from collections.abc import Coroutine, Sequence
from typing import Any

from fastapi import Request, Response

from toolchat.chat.client import PromptSpec
from toolchat.service.api.approvals import PendingTurn
from toolchat.service.api.dependencies import reject_prefetch
from toolchat.service.api.idempotency import IdempotencyAdvisor, IdempotencyStore, IdempotentRequest
from toolchat.service.api.responses.active_request import ActiveRequest
from toolchat.service.api.responses.formats import AnswerFormat, accepted_format
from toolchat.service.api.service import service_state
from toolchat.service.request_state import state_of


def answer(request: Request, query: str, tools: Sequence[object] = ()) -> Coroutine[Any, Any, Response]:
    """Answer a question without a session."""
    return answer_prompt(request, service_state(request).chat.prompt(query).tools(*tools))


async def answer_prompt(
    request: Request, prompt: PromptSpec, only: AnswerFormat | None = None, *, taken: PendingTurn | None = None
) -> Response:
    """Answer a prompt.

    ``only`` is the format of a route that has a single one; ``taken`` the paused turn that the prompt resumes, if any.
    """
    reject_prefetch(request)  # even a question without effects costs money
    form = accepted_format(request, only)
    if response := form.short_circuit(request):
        return response
    state = state_of(request.scope)
    state.form = form.media_type
    if form.error_response is not None:
        # For the exception handlers, which answer an error before the first byte.
        state.error_response = form.error_response
    return await form.respond(ActiveRequest(request, service_state(request), prompt, taken))


async def answer_once(
    request: Request,
    prompt: PromptSpec,
    store: IdempotencyStore,
    idempotent: IdempotentRequest,
    only: AnswerFormat | None = None,
) -> Response:
    """Answer a prompt once for its idempotency key; a repeated request gets the first answer, and a header says so."""
    # Before a stream begins, so that its headers can say it.
    known = await store.find(idempotent)
    response = await answer_prompt(request, prompt.advisors(IdempotencyAdvisor(store, idempotent, known)), only)
    if known is not None:
        response.headers["Idempotency-Replayed"] = "true"
    return response
