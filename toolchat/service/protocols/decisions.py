"""A user's decisions about the calls of a paused turn, in a request that resumes it."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from fastapi import Request, Response

from toolchat.chat.request import Approval
from toolchat.errors import InvalidRequest
from toolchat.service.api.responses.answers import answer_prompt
from toolchat.service.api.responses.formats import AnswerFormat
from toolchat.service.api.service import service_state
from toolchat.service.protocols.wire import ToolDescription, client_tools


class TurnDecisions(NamedTuple):
    """The user's decisions about the calls of a paused turn."""

    turn_id: str
    approvals: Mapping[str, Approval]


def decisions_of(decided: Mapping[str, Approval]) -> TurnDecisions:
    """Read decisions by the ids under which the user was asked: that of the turn, a slash, and that of the call."""
    found = {tuple(each.partition("/")[::2]): approval for each, approval in decided.items()}
    turns = {turn_id for turn_id, _ in found}
    if len(turns) > 1:
        raise InvalidRequest("decide about the calls of one answer only")
    return TurnDecisions(turns.pop(), {call_id: approval for (_, call_id), approval in found.items()})


async def resume_turn(
    request: Request, decided: TurnDecisions, own: Sequence[ToolDescription], form: AnswerFormat
) -> Response:
    """Answer a request with decisions: run the calls that were approved, and go on, with the client's tools as well."""
    service = service_state(request)
    pending = await service.approvals.find(decided.turn_id, decided.approvals)
    # A paused turn can be resumed once, so all of its calls are decided together.
    if missing := ", ".join(call["id"] for call in pending.asked.calls if call["id"] not in decided.approvals):
        raise InvalidRequest(f"decide about every call of the answer ({missing})")
    prompt = pending.prompt(service.chat, decided.approvals)
    added = [each for each in client_tools(own) if each.definition.name not in prompt.request.tool_set.by_name]
    prompt = prompt.tools(*added) if added else prompt
    return await answer_prompt(request, prompt, form, taken=pending)
