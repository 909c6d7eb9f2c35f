"""Stored responses: found by their id, by the ids of their items, and by the response that continues them."""

import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from pydantic import TypeAdapter
from pydantic_core import from_json, to_json

from toolchat.errors import NotFound, StoreUnavailable
from toolchat.service.api.approval_records import without_tokens
from toolchat.service.api.dependencies import belonging_to, scoped_key
from toolchat.service.protocols.openai.responses.requests import CALLS, OUTPUTS, Item, ResponsesRequest
from toolchat.service.protocols.partial_turns import saved_turn_id
from toolchat.service.protocols.wire import BadRequest
from toolchat.state.base import StateStore, Write, decoding

_MAX_RESPONSES = 64
"""The most responses of a conversation that are read; with more, the oldest are left out."""
_ITEM_ID = re.compile(r"[a-z]+_([0-9a-f]{24})_(\d{1,4})")
_ITEMS = TypeAdapter(list[Item])
_DELETED = b"deleted"
"""Takes the place of a deleted response, so that one that continues it is not answered without its beginning."""


class PreviousResponseNotFound(BadRequest):
    """The response to continue does not exist, was deleted, or has expired."""

    code = "previous-response-not-found"


class ResponseStore:
    """The responses of the current principal in the state store, for ``ttl`` seconds."""

    def __init__(self, store: StateStore, *, ttl: float) -> None:
        self._store = store
        self._ttl = ttl

    async def save(
        self, identifier: str, document: bytes, items: Sequence[Item], previous: str, conversation: str = ""
    ) -> None:
        """Store a response as JSON with its input; without the store the answer is sent all the same."""
        sent = _ITEMS.dump_json([*items], exclude_none=True)
        record = b'{"response":%b,"input":%b,"previous":%b}' % (document, sent, to_json(previous))
        value = without_tokens(record)
        with suppress(StoreUnavailable):
            await self._store.commit([Write(_key(identifier), value, self._ttl, lists=belonging_to(conversation))])

    async def find(self, identifier: str) -> dict[str, Any]:
        """The record of a response: ``response``, ``input`` and ``previous``."""
        value = await self._store.get(_key(identifier))
        if value in (None, _DELETED):
            was_deleted = f"the response {identifier!r} was deleted"
            raise NotFound(was_deleted if value else f"no response is stored under the id {identifier[:64]!r}")
        with decoding("the response cannot be read"):
            record: dict[str, Any] = from_json(value or b"")
            return record

    async def delete(self, identifier: str) -> None:
        """Delete a response; raises as :meth:`find`."""
        await self.find(identifier)
        await self._store.put(_key(identifier), _DELETED, ttl=self._ttl)

    async def complete(self, sent: ResponsesRequest) -> tuple[list[Item], list[Item], str]:
        """The items of earlier responses, those of the request, and the id of the response that it continues."""
        if not sent.previous_response_id and not [each for each in sent.input if each.type != "message"]:
            return [], sent.input, ""
        items = await self._resolved(sent.input)
        if previous := sent.previous_response_id or "":
            return await self._history(previous), items, previous
        # With a conversation, clients send only the results of their calls.
        called = {each.call_id for each in items if each.type in CALLS}
        results = [each.call_id or "" for each in items if each.type in OUTPUTS]
        previous = next(
            (f"resp_{saved}" for each in results if each not in called and (saved := saved_turn_id(each))), ""
        )
        with suppress(PreviousResponseNotFound):
            return await self._history(previous) if previous else [], items, previous
        return [], items, ""

    async def _history(self, identifier: str) -> list[Item]:
        items: list[dict[str, Any]] = []
        for number in range(_MAX_RESPONSES):
            try:
                record = await self.find(identifier)
            except NotFound as error:
                if not number or await self._store.get(_key(identifier)):  # it is known to have been deleted
                    raise PreviousResponseNotFound(error.detail, "previous_response_id") from None
                break  # it has expired
            items = [*record["input"], *record["response"]["output"], *items]
            if not (identifier := record["previous"]):
                return _ITEMS.validate_python(items)
        # The beginning is missing, so what is left begins with a question: results without their calls are invalid.
        start = next((n for n, each in enumerate(items) if each.get("role") == "user"), len(items))
        return _ITEMS.validate_python(items[start:])

    async def _resolved(self, items: Sequence[Item]) -> list[Item]:
        """Replace references by the items; the AI SDK sends them instead of whatever the service stores."""
        responses: dict[str, list[Any]] = {}
        resolved: list[Item] = []
        for index, item in enumerate(items):
            if item.type != "item_reference":
                resolved.append(item)
                continue
            found = _ITEM_ID.fullmatch(item.id or "")
            identifier, number = (f"resp_{found[1]}", int(found[2])) if found else ("", 0)
            try:
                if identifier not in responses:
                    responses[identifier] = (await self.find(identifier))["response"]["output"]
                resolved.append(Item.model_validate(responses[identifier][number]))
            except (NotFound, IndexError):
                raise BadRequest(f"input[{index}]: no item is stored under this id", f"input[{index}].id") from None
        return resolved


def _key(identifier: str) -> str:
    return f"response:{scoped_key(identifier)}"
