"""OpenAI's conversations: sessions of the service that a client creates first, and sees as items."""

import hashlib
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

from fastapi import Query, Request, Response
from pydantic import BaseModel, Field
from pydantic_core import from_json, to_json

from toolchat.chat.session_records import parse_turn_summary
from toolchat.chat.turns import Turn
from toolchat.errors import NotFound
from toolchat.service.access.principals import session_ttl
from toolchat.service.api.dependencies import belonging_to, scoped_key
from toolchat.service.api.responses.formats import json_response
from toolchat.service.api.service import Service, ServiceState
from toolchat.service.api.sessions import conversation_of, forget
from toolchat.service.protocols.messages import FieldNames
from toolchat.service.protocols.openai.documentation import documents_router
from toolchat.service.protocols.openai.responses.requests import Item, Metadata, conversation_of_items
from toolchat.service.protocols.wire import SERVER_LABEL, BadRequest, Wire, json_body, read_request
from toolchat.state.base import decoding

_PATH = "/v1/conversations/{identifier}"
PREFIX = "conv_"
_MCP = "mcp_"
"""Begins the ids of calls that were added as ``mcp_call``, which has no other id."""
_BODY = {"requestBody": {"content": {"application/json": {"schema": {"type": "object"}}}}}

_NAMES = FieldNames("items", "call_id")

router = documents_router()


class ConversationRequest(Wire):
    """The body of a request that creates a conversation, or adds items to one."""

    items: list[Item] | None = Field(None, max_length=20)
    metadata: Metadata | None = None


class Page(BaseModel):
    """The part of a list that a request asks for."""

    after: str = ""
    limit: int = Field(20, ge=1, le=100)
    order: Literal["asc", "desc"] = "desc"

    def response(self, items: Sequence[dict[str, Any]]) -> Response:
        """The page of the items, which are given oldest first."""
        shown = items if self.order == "asc" else items[::-1]
        known = ["", *(each["id"] for each in shown)]
        if self.after not in known:
            raise BadRequest("after: no item has this id", "after")
        begin = known.index(self.after)
        data = shown[begin : begin + self.limit]
        ids = {"first_id": data[0]["id"] if data else "", "last_id": data[-1]["id"] if data else ""}
        return json_response({"object": "list", "data": data, **ids, "has_more": begin + self.limit < len(shown)})


@router.post("/v1/conversations", summary="Create a conversation", openapi_extra=_BODY)
async def create(request: Request, service: Service) -> Response:
    """Create a conversation, with up to 20 items."""
    sent, identifier = await _read(request), f"{PREFIX}{secrets.token_hex(24)}"
    await _append(service, identifier, sent)
    metadata, created = sent.metadata or {}, int(time.time())
    document = {"id": identifier, "object": "conversation", "created_at": created, "metadata": metadata}
    await _put(service, identifier, to_json(document))
    return json_response(document)


@router.get(_PATH, summary="Show a conversation")
async def show(service: Service, identifier: str) -> Response:
    """Show the metadata of a conversation."""
    return json_response(await find(service, identifier))


@router.post(_PATH, summary="Change the metadata of a conversation", openapi_extra=_BODY)
async def update(request: Request, service: Service, identifier: str) -> Response:
    """Replace the metadata of a conversation."""
    sent = await _read(request)
    if sent.metadata is None:
        raise BadRequest("metadata: is missing", "metadata")
    document = await find(service, identifier) | {"metadata": sent.metadata}
    await _put(service, identifier, to_json(document))
    return json_response(document)


@router.delete(_PATH, summary="Delete a conversation")
async def delete(service: Service, identifier: str) -> Response:
    """Delete a conversation, which is a session."""
    await find(service, identifier)
    await forget(service, identifier)
    return json_response({"id": identifier, "object": "conversation.deleted", "deleted": True})


@router.get(f"{_PATH}/items", summary="List the items of a conversation")
async def items(service: Service, identifier: str, page: Annotated[Page, Query()]) -> Response:
    """List the items of a conversation after the item `after`, `limit` at a time, by default the newest first."""
    return page.response(await _stored(service, identifier))


@router.post(f"{_PATH}/items", summary="Add items to a conversation", openapi_extra=_BODY)
async def add_items(request: Request, service: Service, identifier: str) -> Response:
    """Add up to 20 items to a conversation; a call needs its output."""
    sent = await _read(request)
    await find(service, identifier)
    return Page(limit=100, order="asc").response(await _append(service, identifier, sent))


@router.get(f"{_PATH}/items/{{item}}", summary="Show an item of a conversation")
async def show_item(service: Service, identifier: str, item: str) -> Response:
    """Show an item of a conversation by its id."""
    for each in await _stored(service, identifier):
        if each["id"] == item:
            return json_response(each)
    raise NotFound(f"the conversation has no item {item[:64]!r}")


@router.delete(f"{_PATH}/items/{{item}}", include_in_schema=False)
async def delete_item(identifier: str, item: str) -> Response:  # noqa: ARG001
    """Name what to use instead: the calls and the text of an answer are stored as one turn."""
    raise BadRequest("items cannot be deleted one by one; delete the conversation, or create one with other items")


async def find(service: ServiceState, identifier: str) -> dict[str, Any]:
    """A conversation, which is stored for as long again as a session. Raises ``NotFound``."""
    if (value := await service.store.get(_key(identifier))) is None:
        raise NotFound(f"no conversation is stored under the id {identifier[:64]!r}")
    await _put(service, identifier, value)
    with decoding("the conversation cannot be read"):
        return dict(from_json(value))


async def _put(service: ServiceState, identifier: str, value: bytes) -> None:
    lists = belonging_to(scoped_key(identifier))
    ttl = session_ttl(service.settings.session_ttl)
    await service.store.put(_key(identifier), value, ttl=ttl, lists=lists)


async def _stored(service: ServiceState, identifier: str) -> list[dict[str, Any]]:
    """All items of a conversation, oldest first. Raises as :func:`find`."""
    await find(service, identifier)
    turns = await service.memory.turns(conversation_of(identifier))
    return [each for turn in turns for each in _items(turn)]


async def _read(request: Request) -> ConversationRequest:
    return read_request(ConversationRequest, await json_body(request) or b"{}")


async def _append(service: ServiceState, identifier: str, sent: ConversationRequest) -> list[dict[str, Any]]:
    """Store items as a turn, with calls and results, and return them as they are listed."""
    if not sent.items:
        return []
    messages = conversation_of_items([], sent.items, names=_NAMES)
    window = replace(service.memory.window, tool_rounds=True)
    if not window.fits(messages):
        raise BadRequest("items: longer than the memory of a conversation", "items")
    async with service.memory.open_turn(conversation_of(identifier)) as opened:
        turn = Turn.recorded(window.trim(messages), identifier=secrets.token_hex(16))
        await service.memory.save(opened, turn)
    return [*_items(turn)]


def _items(turn: Turn) -> list[dict[str, Any]]:
    digest = hashlib.sha256(turn.record).hexdigest()[:24]
    return [shown(item, f"{digest}_{number}") for number, item in enumerate(_parts(turn))]


def _parts(turn: Turn) -> Iterator[dict[str, Any]]:
    *records, answer = from_json(turn.record)
    ran = parse_turn_summary(turn.summary).get("tool_calls", [])
    known = {each["id"] for each in ran}  # their rounds are stored as well, if the memory has them
    given = [each for record in (*records, answer) for each in record.get("responses", ())]
    results = {each["id"]: each["text"] for each in given if each["id"] not in known}
    for record in (*records, *map(_ran, ran), answer):
        if record.get("text"):
            yield {"type": "message", "role": record["role"], "content": record["text"]}
        if "server_label" in record:
            yield record
        yield from _calls(record, results)


def _calls(record: dict[str, Any], results: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """The calls and the results of a message, of those that have one of the results."""
    for call in record.get("tool_calls", ()):
        named = {"name": call["name"], "arguments": call["arguments"]}
        if call["id"] in results and call["id"].startswith(_MCP):
            yield _ran({**named, "result": results[call["id"]], "outcome": "ok"})
        elif call["id"] in results:
            yield {"type": "function_call", "call_id": call["id"], **named}
    for result in record.get("responses", ()):
        if result["id"] in results and not result["id"].startswith(_MCP):
            yield {"type": "function_call_output", "call_id": result["id"], "output": result["text"]}


def shown(item: dict[str, Any], identifier: str) -> dict[str, Any]:
    """An item with what requests may leave out."""
    prefix = {"message": "msg", "function_call": "fc", "function_call_output": "fco"}.get(item["type"], "item")
    shown = {"id": f"{prefix}_{identifier}", "status": "completed", **item}
    content, is_output = item.get("content"), item.get("role") == "assistant"
    if isinstance(content, str):
        shown["content"] = [{"type": "output_text" if is_output else "input_text", "text": content}]
    if is_output:
        shown["content"] = [{"annotations": [], **each} for each in shown["content"]]
    return shown


def _ran(call: dict[str, Any]) -> dict[str, Any]:
    arguments = call["arguments"] if isinstance(call["arguments"], str) else to_json(call["arguments"]).decode()
    shown = {"name": call["name"], "server_label": SERVER_LABEL, "arguments": arguments, "output": call["result"]}
    return {"type": "mcp_call", **shown, "error": None, "status": "completed" if call["outcome"] == "ok" else "failed"}


def _key(identifier: str) -> str:
    return f"conversation:{scoped_key(identifier)}"
