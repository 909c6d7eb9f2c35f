"""Many small lies at once: mutated bytes, and values that fit the schema or nearly do."""

import asyncio
import json
import string
from collections import Counter
from copy import deepcopy
from random import Random
from typing import Any
from urllib.parse import quote

from tests.faults.service import Service
from tests.faults.stage import Stage
from tests.faults.wire import Reply, exchange, question

_SMALL = {"SERVER_CLIENT_TIMEOUT": "1", "STATE_URL": "memory://?max_mb=1"}
_DOCUMENTED = {"not-configured", "store-unavailable", "overloaded", "tool-server-away", "upstream-invalid"}
_ODD: tuple[Any, ...] = (
    None, True, 0, -1, 2**63, 1e308, "", " ", "\x00", "\ud800", "x" * 5000, "东京", [], [[]], {}, {"a": {}}, "../..",
    "a\r\nb", "%00", "{{7*7}}", "' OR 1=1", "http://169.254.169.254/", [None] * 50,
)  # fmt: skip


def _count(stage: Stage, usual: int) -> int:
    return usual * 10 if stage.minutes > 10 else usual if stage.minutes > 1 else usual // 20


async def _all(service: Service, requests: list[bytes]) -> list[Reply]:
    """Send them fifty at a time, from several addresses, so that no limit for one client hides what is looked for."""
    replies: list[Reply] = []
    for at in range(0, len(requests), 50):
        group = requests[at : at + 50]
        replies += await asyncio.gather(
            *(exchange(service.port, each, source=f"127.0.0.{1 + place}") for place, each in enumerate(group))
        )
    assert (await service.ask("/time/chat?query=hi")).status == 200, "it does not answer any more"
    return replies


def _unexpected(stage: Stage, replies: list[Reply]) -> float:
    statuses = Counter(each.status for each in replies)
    print(", ".join(f"{count} × {status or 'nothing'}" for status, count in statuses.most_common(6)))
    return sum(each.status >= 500 and each.code not in _DOCUMENTED for each in replies)


async def test_every_operation_with_odd_values(stage: Stage) -> None:
    """Each operation of `/openapi.json` with odd values for its parameters and its body."""
    service = await stage.service(**_SMALL)
    draw = stage.random()
    paths: dict[str, dict[str, Any]] = (await service.ask("/openapi.json")).json()["paths"]
    operations = [(path, method, what) for path, each in paths.items() for method, what in each.items()]
    requests = [_odd_request(draw, *draw.choice(operations)) for _ in range(_count(stage, 3000))]
    assert _unexpected(stage, await _all(service, requests)) == 0


def _odd_request(draw: Random, path: str, method: str, operation: dict[str, Any]) -> bytes:
    query = []
    headers = {"Accept": draw.choice(("application/json", "text/plain", "text/event-stream", "*/*"))}
    for each in operation.get("parameters", []):
        value = draw.choice(_ODD)
        text = value if isinstance(value, str) else json.dumps(value)
        encoded = quote(text.encode("utf-8", "replace")[:500])
        if each["in"] == "path":
            path = path.replace("{" + each["name"] + "}", encoded or "x")
        elif each["in"] == "query" and draw.random() < 0.8:
            query.append(f"{each['name']}={encoded}")
        elif each["in"] == "header":
            headers[each["name"]] = encoded
    body = b""
    if "requestBody" in operation:
        headers["Content-Type"] = "application/json"
        body = _body(draw) if draw.random() < 0.8 else json.dumps(draw.choice(_ODD)).encode()
    return question(f"{path}?{'&'.join(query)}" if query else path, method=method.upper(), headers=headers, body=body)


_NAMES = (
    "query", "userInput", "sessionId", "tools", "messages", "model", "stream", "id", "method", "params", "jsonrpc",
    "name", "arguments", "role", "content", "sides", "approve", "decisions", "tool_choice", "parts", "n",
)  # fmt: skip


def _body(draw: Random, *, nice: bool = False) -> bytes:
    if nice:
        return json.dumps({"model": "toolchat", "messages": [{"role": "user", "content": "hi"}]}).encode()
    return json.dumps(_odd(draw, 0)).encode()


def _odd(draw: Random, depth: int) -> Any:
    if depth == 0 or (depth < 4 and draw.random() < 0.4):
        if depth and draw.random() < 0.3:
            return [_odd(draw, depth + 1) for _ in range(draw.randrange(4))]
        return {draw.choice(_NAMES): _odd(draw, depth + 1) for _ in range(draw.randrange(1, 6))}
    if draw.random() < 0.3:
        return "".join(draw.choice(string.printable) for _ in range(draw.randrange(20)))
    return deepcopy(draw.choice((*_ODD, "user", "assistant", "2.0", "tools/call", "initialize", "hi")))
