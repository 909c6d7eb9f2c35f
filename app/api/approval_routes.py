"""The route on which the user's consent is given."""

from fastapi import APIRouter, Request, Response

from app.api.answers import answer_prompt, stopped_reconnecting
from app.api.approvals import Decisions
from app.api.chat_routes import ANSWER_RESPONSES
from app.api.negotiation import negotiate
from app.api.problems import problems
from app.api.state import service_state

__all__ = ["router"]

router = APIRouter(tags=["Approvals"])


@router.post(
    "/approvals/{identifier}",
    response_class=Response,
    responses={**ANSWER_RESPONSES, **problems(404)},
    summary="Decide about the calls of an answer that waits for approval",
)
async def decide(request: Request, identifier: str, decisions: Decisions) -> Response:
    """Go on with a turn that paused because a tool needs the user's consent.

    The answer that paused has `finish_reason` `approval_required` and names this path's id under `approval`. Each id
    can be used once; a call without a decision counts as rejected.
    """
    state = service_state(request)
    form = negotiate(",".join(request.headers.getlist("accept")))
    if stopped := stopped_reconnecting(request, form):
        return stopped
    paused = state.approvals.take(identifier, decisions.decisions)
    approvals = {call_id: decision.as_approval() for call_id, decision in decisions.decisions.items()}
    before = paused.prompt
    prompt = state.chat.resume(paused.response, approvals).tools(*before.request.tools).advisors(*before.own_advisors)
    return await answer_prompt(request, prompt.tool_context(before.request.context.values))
