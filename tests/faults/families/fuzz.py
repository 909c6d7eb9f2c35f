"""Many small lies at once: mutated bytes, and values that fit the schema or nearly do."""

import asyncio
import json
import string
import subprocess
from collections import Counter
from copy import deepcopy
from random import Random
from typing import Any
from urllib.parse import quote

from app.sandbox import running_sandbox
from tests.faults.fault import fault, held
from tests.faults.service import PEERS, Service, bare_environment
from tests.faults.stage import Stage
from tests.faults.wire import Reply, exchange, question

_SMALL = {"SERVER_CLIENT_TIMEOUT": "1", "STATE_URL": "memory://?max_mb=1"}
_DOCUMENTED = {"not-configured", "store-unavailable", "overloaded", "tool-server-away", "upstream-invalid"}
_JSON = {"Content-Type": "application/json", "Accept": "application/json"}
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
    held((await service.ask("/time/chat?query=hi")).status == 200, "it does not answer any more")
    return replies


def _unexpected(stage: Stage, replies: list[Reply]) -> float:
    statuses = Counter(each.status for each in replies)
    stage.note = ", ".join(f"{count} × {status or 'nothing'}" for status, count in statuses.most_common(6))
    return sum(each.status >= 500 and each.code not in _DOCUMENTED for each in replies)


@fault(users="4xx, or an answer", figure="5xx that are not documented", at_most=0, fast=True, limit=600)
async def mutated_bytes(stage: Stage) -> float:
    """Thousands of valid requests with bytes flipped, doubled, cut out or swapped (a twentieth in the fast half)."""
    service = await stage.service(**_SMALL)
    draw = stage.random()
    valid = [
        question("/time/chat?query=hi"),
        question("/chat?userInput=hi&sessionId=fuzz", headers={"Accept": "text/event-stream"}),
        question("/time/chat", method="POST", headers=_JSON, body=b'{"query": "hi"}'),
        question("/tools/rollDice", method="POST", headers=_JSON, body=b'{"sides": 6}'),
        question("/v1/chat/completions", method="POST", headers=_JSON, body=_body(draw, nice=True)),
        question("/approvals/x", method="POST", headers=_JSON, body=b'{"approve": true}'),
    ]
    requests = [_mutated(draw, draw.choice(valid)) + b"\r\n\r\n" for _ in range(_count(stage, 3000))]
    return _unexpected(stage, await _all(service, requests))


_BYTES = (b"\r\n", b"\x00", b"%ff", b": ", b"9" * 20, b"\xf0\x9f", b"[" * 50)


def _mutated(draw: Random, content: bytes) -> bytes:
    mutant = bytearray(content)
    for _ in range(draw.randrange(1, 5)):
        at, size = draw.randrange(len(mutant)), draw.randrange(1, 12)
        match draw.randrange(5):
            case 0:
                mutant[at] ^= 1 << draw.randrange(8)
            case 1:
                mutant[at:at] = mutant[at : at + size] * draw.randrange(1, 30)
            case 2:
                del mutant[at : at + size]
            case 3:
                mutant[at:at] = bytes(draw.randrange(256) for _ in range(size))
            case _:
                mutant[at : at + size] = draw.choice(
                    (b"\r\n", b"\x00", b"%ff", b": ", b"9" * 20, b"\xf0\x9f", b"[" * 50)
                )
        mutant = mutant or bytearray(b"\r\n")
    return bytes(mutant)


@fault(users="4xx, or an answer", figure="5xx that are not documented", at_most=0, fast=True, limit=600)
async def every_operation_with_odd_values(stage: Stage) -> float:
    """Each operation of `/openapi.json` with odd values for its parameters and its body."""
    service = await stage.service(**_SMALL)
    draw = stage.random()
    paths: dict[str, dict[str, Any]] = (await service.ask("/openapi.json")).json()["paths"]
    operations = [(path, method, what) for path, each in paths.items() for method, what in each.items()]
    requests = [_odd_request(draw, *draw.choice(operations)) for _ in range(_count(stage, 3000))]
    return _unexpected(stage, await _all(service, requests))


@fault(users="what the schema says", figure="operations and checks that found something", at_most=0, peer=True,
       limit=900)  # fmt: skip
async def what_the_schema_promises(stage: Stage) -> float:
    """Each operation of `/openapi.json` is sent what its schema allows and what it forbids (schemathesis)."""
    program = PEERS / "bin" / "schemathesis"
    held(program.exists(), "schemathesis is not installed: make benchmarks/.venv/.peers")
    sandbox = stage.row.enter_context(running_sandbox())  # else the upstreams of tools are 503, as they should be
    service = await stage.own(CHAT_PROVIDER="offline", OPENAI_API_KEY="", OPENAI_BASE_URL="", SANDBOX_URL=sandbox)
    command = [str(program), "run", f"{service.url}/openapi.json", f"--seed={stage.seed}", f"-n{_count(stage, 20)}",
               f"--report-ndjson-path={stage.folder / 'report'}", *_SCHEMATHESIS]  # fmt: skip
    run = await asyncio.create_subprocess_exec(
        *command, cwd=stage.folder, env=bare_environment({}), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
    )
    said = (await run.communicate())[0].decode()
    held(run.returncode in (0, 1), f"schemathesis says {said[-300:]!r}")
    cases, found = _findings((stage.folder / "report").read_text(encoding="utf-8"))
    stage.note = "; ".join([f"{cases} cases", *sorted(found)])
    return len(found)


_SCHEMATHESIS = (
    "--continue-on-failure", "--phases=examples,coverage,fuzzing", "--suppress-health-check=all", "--no-color",
    "--generation-database=none", "--request-timeout=20",
    # What a schema cannot say, such as that two parameters exclude each other, is refused all the same; and DELETE of
    # `/chat/stream` is told that no session may be called so.
    "--exclude-checks=positive_data_acceptance,unsupported_method",
)  # fmt: skip


def _findings(report: str) -> tuple[int, set[str]]:
    """How many cases were tried, and what did not hold of which operation."""
    cases, found = 0, set[str]()
    for line in report.splitlines():
        record = json.loads(line).get("ScenarioFinished", {}).get("recorder", {})
        cases += len(record.get("cases", ()))
        for checks in record.get("checks", {}).values():
            found |= {f"{record['label']}: {_reason(each)}" for each in checks if each["status"] != "success"}
    return cases, found


def _reason(check: dict[str, Any]) -> str:
    """What a check says in the end, which is where in the request it was."""
    said = check.get("failure_info", {}).get("failure", {}).get("message") or check["name"]
    return str(said).splitlines()[-1]


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


async def _posted(stage: Stage, path: str, usual: int, extra: dict[str, str] | None = None) -> float:
    service = await stage.service(**_SMALL)
    draw = stage.random()
    headers = {**_JSON, "Accept": "application/json, text/event-stream", **(extra or {})}
    bodies = [_wire_body(draw, path) for _ in range(_count(stage, usual))]
    requests = [question(path, method="POST", headers=headers, body=body) for body in bodies]
    return _unexpected(stage, await _all(service, requests))


_METHODS = ("tools/call", "tools/list", "ping")


def _wire_body(draw: Random, path: str) -> bytes:
    """Odd values in place of one or two parts of a message that would be right."""
    messages = [{"role": "user", "content": "hi", "parts": [{"type": "text", "text": "hi"}]}]
    right: dict[str, Any] = {"model": "toolchat", "messages": messages, "id": "c1", "trigger": "submit-message"}
    if path == "/mcp":
        params = {"name": "rollDice", "arguments": {"sides": 6}, "_meta": {"progressToken": 1}}
        right = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": draw.choice(("tools/call", "tools/list", "ping")),
            "params": params,
        }
    for _ in range(draw.randrange(1, 3)):
        part: Any = right
        while isinstance(part, dict) and part and draw.random() < 0.6:
            key = draw.choice(list(part))
            if not isinstance(part[key], dict):
                break
            part = part[key]
        if isinstance(part, dict):
            part[draw.choice([*part, *_NAMES])] = _odd(draw, 1)
    return json.dumps(right).encode()


@fault(users="an error in OpenAI's form, or an answer", figure="5xx that are not documented", at_most=0, fast=True,
       limit=600)  # fmt: skip
async def odd_chat_completions(stage: Stage) -> float:
    """`/v1/chat/completions` with odd values in its bodies."""
    return await _posted(stage, "/v1/chat/completions", 1500)


@fault(
    users="an error of JSON-RPC, or an answer", figure="5xx that are not documented", at_most=0, fast=True, limit=600
)
async def odd_mcp_messages(stage: Stage) -> float:
    """`/mcp` with odd values in its messages."""
    return await _posted(stage, "/mcp", 1500, {"MCP-Protocol-Version": "2025-06-18"})


@fault(
    users="an error in its form, or an answer", figure="5xx that are not documented", at_most=0, fast=True, limit=600
)
async def odd_ai_sdk_messages(stage: Stage) -> float:
    """`/ai-sdk/chat` with odd values in its messages."""
    return await _posted(stage, "/ai-sdk/chat", 1500)
