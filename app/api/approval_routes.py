"""The route on which the user's consent is given."""

from collections.abc import Callable
from functools import partial

from fastapi import APIRouter, Request, Response

from app.api.answer_responses import ANSWER_RESPONSES
from app.api.answering import answer_prompt
from app.api.answering.negotiation import acceptable
from app.api.approvals import Decisions, PausedTurn
from app.api.problems import problems
from app.api.service import Service
from app.chat.advisors import Advisor, AdvisorChain
from app.chat.memory import ChatMemory
from app.chat.request import ChatEvent, ChatRequest, Emit
from app.chat_models.base import ChatResponse
from app.errors import NotFound

__all__ = ["router"]

router = APIRouter(tags=["Approvals"])


@router.post(
    "/approvals/{identifier}",
    response_class=Response,
    responses={**ANSWER_RESPONSES, **problems(404)},
    summary="Decide about the calls of an answer that waits for approval",
)
async def decide(request: Request, service: Service, identifier: str, decisions: Decisions) -> Response:
    """Go on with a turn that paused because a tool needs the user's consent.

    The answer that paused has `finish_reason` `approval_required` and names this path's id under `approval`. Each id
    can be used once; a call without a decision counts as rejected. Refused before anything was run, as with 409
    `session-busy`, it can be used again.
    """
    if stopped := acceptable(request).without_asking(request):
        return stopped
    with service.admission.slot():
        paused = service.approvals.take(identifier, decisions.decisions)
    unused = UnusedApproval(partial(service.approvals.put_back, identifier, paused))
    await unused.check(service.memory, paused)
    approvals = {call_id: decision.as_approval() for call_id, decision in decisions.decisions.items()}
    before = paused.prompt
    prompt = service.chat.resume(paused.response, approvals).tools(*before.request.tools)
    prompt = prompt.advisors(*before.own_advisors, unused).tool_context(before.request.context.values)
    return await answer_prompt(request, prompt)


class UnusedApproval(Advisor):
    """Gives an approval back when the turn ends before anything of it was run: refused, or its client left."""

    order = -2000

    def __init__(self, give_back: Callable[[], None]) -> None:
        self._give_back = give_back

    async def check(self, memory: ChatMemory, paused: PausedTurn) -> None:
        """Make sure that the turn's conversation is still there, if it has one.

        Raises:
            NotFound: it was forgotten since; the approval is void.
            StoreUnavailable: that cannot be said; the approval goes on waiting.
        """
        if paused.conversation is None:
            return
        try:
            forgotten = await memory.was_forgotten_since(paused.conversation, paused.paused_at)
        except BaseException:
            self._give_back()
            raise
        if forgotten:
            raise NotFound("the conversation that the answer belonged to has been deleted")

    async def advise(self, request: ChatRequest, chain: AdvisorChain, emit: Emit) -> ChatResponse:
        """See :meth:`Advisor.advise`."""
        begun = False

        async def noted(event: ChatEvent) -> None:
            nonlocal begun
            begun = True
            await emit(event)

        try:
            response = await chain.proceed(request, noted)
            begun = True
            return response
        finally:
            if not begun:
                self._give_back()
