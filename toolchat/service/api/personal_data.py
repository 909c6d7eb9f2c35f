"""What is stored for a conversation or for a person, exported or deleted as a whole: its routes.

Whatever stores something adds it to the lists of ``belonging_to``; what is in them is found here, of whatever kind.
"""

from collections.abc import AsyncGenerator
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Response
from fastapi.responses import StreamingResponse
from pydantic_core import from_json

from toolchat.chat.memory import ChatMemory
from toolchat.errors import Forbidden, NotFound, SessionBusy, StoreUnavailable
from toolchat.service.access.principals import PRIVACY, current_request_caller
from toolchat.service.api.background.records import BackgroundRecords
from toolchat.service.api.dependencies import of_person, parts_of, require_same_site, session_of
from toolchat.service.api.problems import problems
from toolchat.service.api.responses.formats import json_lines, json_lines_responses
from toolchat.service.api.service import Service
from toolchat.state.base import StateStore


async def delete_conversation(store: StateStore, memory: ChatMemory, conversation: str) -> None:
    """Delete a conversation with all that belongs to it."""
    parts = parts_of(conversation)
    # Before the session is locked, which a running question has locked itself.
    await BackgroundRecords(store).delete_unfinished(*parts)
    # While it is locked: an answer that paused in the meantime would survive its conversation.
    await memory.delete(conversation, *parts)


class PersonalData:
    """All that is stored for one principal, except for decisions about calls, whose record has to be kept."""

    # Every operation raises ``StoreUnavailable``.

    def __init__(self, store: StateStore, memory: ChatMemory, name: str) -> None:
        self._store, self._memory = store, memory
        self._sessions = f"sessions:{name}"
        self._parts = (*of_person(f"{name}/"), f"approvals-waiting:of:{name}", f"approvals-decided:of:{name}")

    async def export(self) -> AsyncGenerator[dict[str, Any], None]:
        """The stored values with their logs, each once."""
        seen = set[str]()
        for name in (self._sessions, *self._parts):
            async for key, value, at in self._store.newest(name):
                if key not in seen:
                    seen.add(key)
                    lines = await self._store.read_log(key)
                    yield {"kind": key.partition(":")[0], "id": session_of(key.partition(":")[2]), "at": at} | {
                        "value": _shown(value),
                        "log": list(map(_shown, lines)),
                    }

    async def delete(self) -> None:
        await BackgroundRecords(self._store).delete_unfinished(*self._parts)
        async for key, *_ in self._store.newest(self._sessions):
            await delete_conversation(self._store, self._memory, key.partition(":")[2])
        await self._store.delete_listed(*self._parts)


def _shown(value: bytes) -> Any:
    try:
        return from_json(value)
    except ValueError:
        return value.decode(errors="replace")


router = APIRouter(tags=["Chat"])


async def _data(
    service: Service,
    name: Annotated[
        str, Query(description="The principal as logs name it: a key, or key~person; by default the client's own")
    ] = "",
) -> PersonalData:
    principal = current_request_caller().principal
    if name not in ("", principal.name) and PRIVACY not in principal.roles:
        raise Forbidden(f"the data of others needs the role {PRIVACY}")
    if not (whose := name or principal.name):
        raise NotFound("clients without a key share their data: delete a session by its id")
    return PersonalData(service.store, service.memory, whose)


Data = Annotated[PersonalData, Depends(_data)]


@router.get(
    "/person",
    response_class=StreamingResponse,
    responses=json_lines_responses(Forbidden, NotFound, StoreUnavailable),
    summary="Export a person's data",
)
async def export(data: Data) -> StreamingResponse:
    """List all that is stored for a principal, one JSON object a line: conversations, answers, approvals and so on.

    Decisions about calls are in `/audit`.
    """
    return await json_lines(data.export())


@router.delete(
    "/person",
    status_code=204,
    dependencies=[Depends(require_same_site)],
    responses=problems(Forbidden, NotFound, SessionBusy, StoreUnavailable),
    summary="Delete a person's data",
)
async def delete(data: Data) -> Response:
    """Delete all that is stored for a principal, except for the record of decisions; 204 even if there is nothing.

    Questions in the background are cancelled. If it fails, a part is deleted already, and another try deletes the rest.
    """
    await data.delete()
    return Response(status_code=204)
