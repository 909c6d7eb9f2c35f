"""The commands ``approvals``: list, show and decide what waits at a running service."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import quote

from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json, to_json

from toolchat.errors import ConfigurationError, ToolchatError
from toolchat.http.client import OutboundHttp, Reply
from toolchat.service.cli import Program
from toolchat.service.cli.opened_service import ANSWERED, FAILED, WAITS
from toolchat.service.cli.terminal import escape_controls, print_error, print_note, print_result
from toolchat.service.settings.base import describe_faults, read_settings
from toolchat.service.settings.env_file import load_env_file
from toolchat.service.settings.service_settings import Settings
from toolchat.tool_calling.setting_types import BaseUrl

READ_TIMEOUT, _ANSWER_TIMEOUT = 30.0, 3610.0
"""Seconds: for what the service only looks up, and longer than an answer of the service can take."""
_Send = Callable[..., Awaitable[Reply]]


def _at_service(use: Callable[..., Awaitable[int]]) -> Callable[..., int]:
    """Make a command of a coroutine function that sends requests to the running service."""

    async def connected(url: str, options: dict[str, Any]) -> int:
        http = OutboundHttp()
        key = {"X-API-Key": key} if (key := os.environ.get("TOOLCHAT_API_KEY", "").strip()) else {}

        async def send(method: str, path: str, body: bytes = b"") -> Reply:
            headers = {"Accept": "text/plain", "Content-Type": "application/json", **key}
            upstream, timeout = "the service", _ANSWER_TIMEOUT if body else READ_TIMEOUT
            address = f"{url}/approvals{path}"
            reply = await http.fetch(method, address, upstream=upstream, timeout=timeout, headers=headers, data=body)
            if reply.status >= 400:
                raise ToolchatError(str(from_json(reply.body)["detail"]))
            return reply

        try:
            return await use(send, **options)
        except ToolchatError as error:
            print_error(f"{url}: {error.detail}")
            return FAILED
        except (ValueError, LookupError, TypeError):
            print_error(f"{url}: does not answer as toolchat does")
            return FAILED
        finally:
            await http.aclose()

    def command(_: Program, *, url: str, **options: Any) -> int:
        load_env_file()
        settings = read_settings(Settings)
        local = f"http://127.0.0.1:{settings.server_port}{settings.server_root_path}"
        try:
            "".join(options.values()).encode()
            address = TypeAdapter(BaseUrl).validate_python(url or local)
        except UnicodeEncodeError:
            raise ConfigurationError("the command line is not UTF-8") from None
        except ValidationError as error:
            raise ConfigurationError(f"--url: {describe_faults(error)[0].message}") from None
        return asyncio.run(connected(address, options))

    return command


@_at_service
async def list_waiting(send: _Send) -> int:
    """Print what waits and the key may decide or has asked, one approval a line, the newest first."""
    before = ""
    while True:
        page = from_json((await send("GET", f"?limit=100&before={before}")).body)
        waiting = [each for each in page["approvals"] if each["status"] == "waiting"]
        if not waiting and not before:
            print_note("Nothing waits for a decision.")
        for each in waiting:
            calls = ", ".join(f"{call['name']}({to_json(call['arguments']).decode()})" for call in each["calls"])
            who = "" if each["may_decide"] else "; somebody else decides"
            print_result(f"{each['id']}  {calls}; {each['asked_by']} asked: {escape_controls(each['question'])}{who}")
        are_all = len(waiting) < len(page["approvals"])  # those that were decided come last
        if are_all or not (before := page["next"]):
            return ANSWERED


@_at_service
async def show(send: _Send, *, identifier: str) -> int:
    """Print one approval: its calls and its question, and what was decided."""
    print_result(to_json(await _document(send, identifier), indent=2).decode())
    return ANSWERED


@_at_service
async def approve(send: _Send, *, identifier: str) -> int:
    """Approve all calls of one approval, and print the answer that resumes."""
    return await _decide(send, identifier, {"approved": True})


@_at_service
async def reject(send: _Send, *, identifier: str, reason: str) -> int:
    """Reject all calls of one approval, and print the answer that resumes."""
    return await _decide(send, identifier, {"approved": False, "reason": reason})


async def _decide(send: _Send, identifier: str, decision: dict[str, Any]) -> int:
    calls = (await _document(send, identifier))["calls"]
    body = to_json({"decisions": {call["id"]: decision for call in calls}})
    reply = await send("POST", f"/{quote(identifier, safe='')}", body)
    print_result(reply.body.decode("utf-8", "replace"))
    return WAITS if "x-approval-id" in reply.headers else ANSWERED


async def _document(send: _Send, identifier: str) -> dict[str, Any]:
    document: dict[str, Any] = from_json((await send("GET", f"/{quote(identifier, safe='')}")).body)
    return document
