"""Incidents whose cause an operator finds from the log, the metrics and the traces alone, as the runbook says.

Each row returns the number of these three that name the cause; the service is not asked otherwise.
"""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.faults.fault import fault, held
from tests.faults.service import Service
from tests.faults.stage import Stage
from tests.faults.upstream import calling, playing, speaking
from tests.faults.waiting import until
from tests.http.certificates import Authority
from tests.players.openai_player import whole
from tests.players.otlp_receiver import OtlpReceiver, Received
from tests.service.observability.reading import parsed

_CHAT = "/chat?userInput=hi"
_TURNS = "toolchat_model_turns_total"
_LEAKING = '''
from toolchat import ToolModule

KEPT = []


async def leaks() -> str:
    """Keep 3 MiB for ever."""
    KEPT.append(bytearray(b"x") * (3 * 2**20))
    return "done"


async def works() -> str:
    """Work."""
    return "done"


module = ToolModule(functions=(leaks, works), default_query="Go")
'''


@dataclass(frozen=True)
class _Signals:
    """What operators have of a service."""

    service: Service
    receiver: OtlpReceiver

    def log(self, **fields: object) -> list[dict[str, Any]]:
        """The log lines with these fields."""
        lines = [json.loads(line) for line in self.service.written().splitlines()]
        return [line for line in lines if fields.items() <= line.items()]

    async def metric(self, name: str, **labels: str) -> float:
        """The sum of the samples with these labels."""
        samples = parsed((await self.service.ask("/metrics")).text)
        return sum(
            value for (each, has), value in samples.items() if each == name and labels.items() <= dict(has).items()
        )

    async def spans(self, begins: str, *, failed: bool = False) -> list[Received]:
        """The spans whose names begin so, once there is one."""

        def found() -> list[Received]:
            return [each for each in self.receiver.spans if each.name.startswith(begins) and each.is_error >= failed]

        await until(found)
        return found()


async def _signals(stage: Stage, **variables: str) -> _Signals:
    receiver = await stage.row.enter_async_context(OtlpReceiver())
    return _Signals(await stage.own(**receiver.variables, **variables), receiver)


async def _refused(stage: Stage, status: int, provider_code: str, code: str) -> float:
    """The provider refuses three questions for one reason; the signals that name it."""
    signals = await _signals(stage)
    stage.upstream.behave = playing(whole({"error": {"message": "no", "code": provider_code}}, status))
    replies = [await signals.service.ask(_CHAT) for _ in range(3)]
    held({each.code for each in replies} == {code}, f"answered {replies[0].code}")
    fields = {"outcome": code, "upstream_status": status, "provider_code": provider_code, "level": "WARNING"}
    await until(lambda: len(signals.log(**fields)) == 3)
    [*_, span] = await signals.spans("chat ")
    said = (span.attributes["error.type"], span.attributes["http.response.status_code"])
    return _named(
        log=all(line["detail"] == replies[0].json()["detail"] for line in signals.log(**fields)),
        metrics=await signals.metric(_TURNS, outcome=code) == 3,
        traces=said == (code, status),
    )


def _named(**by: bool) -> float:
    silent = [name for name, names in by.items() if not names]
    held(not silent, f"the cause is not in: {', '.join(silent)}")
    return len(by)


def _incident(signals: int = 3) -> Callable[..., Any]:
    return fault(
        users="as the runbook says",
        figure="of log, metrics and traces that name the cause",
        at_least=signals,
        fast=signals == 3,
    )


@_incident()
async def incident_key_revoked(stage: Stage) -> float:
    """The provider's key is revoked."""
    return await _refused(stage, 401, "invalid_api_key", "provider-auth")


@_incident()
async def incident_provider_quota(stage: Stage) -> float:
    """The account at the provider has no money left."""
    return await _refused(stage, 429, "insufficient_quota", "provider-quota")


@_incident()
async def incident_redis_away(stage: Stage) -> float:
    """Redis is killed."""
    redis = await stage.redis()
    signals = await _signals(stage, REDIS_URL=redis.url)
    held((await signals.service.ask(_CHAT, session=stage.name())).status == 200, "it did not work before")
    await redis.kill()
    reply = await signals.service.ask(_CHAT, session=stage.name())
    held(reply.code == "store-unavailable", f"answered {reply.outcome}")
    await until(lambda: signals.log(outcome="store-unavailable", level="WARNING"))
    failed = await signals.spans("GET", failed=True)
    [reason] = signals.log(message="the state store cannot be used")
    return _named(
        log=str(redis.port) in reason["server"],
        metrics=await signals.metric("toolchat_state_store_up", kind="redis") == 0,
        traces=[each.attributes["error.type"] for each in failed] == ["store-unavailable"],
    )


@_incident()
async def incident_upstream_slow(stage: Stage) -> float:
    """The provider answers after 0.7 s, and no question fails."""
    signals = await _signals(stage)
    stage.upstream.behave = speaking(lambda _: "Hello.", first=0.7)
    held((await signals.service.ask(_CHAT)).status == 200, "it was not answered")
    await until(lambda: signals.log(route="/chat"))
    [line] = signals.log(route="/chat")
    [model], [whole_request] = await signals.spans("chat "), await signals.spans("GET /chat")
    seconds = await signals.metric("toolchat_model_turn_duration_seconds_sum")
    overhead = await signals.metric("toolchat_question_overhead_seconds_sum")
    return _named(
        log=line["model_ms"] > 0.8 * line["total_ms"] and line["provider"] == "openai_compatible",
        metrics=seconds > 4 * overhead,
        traces=model.ended - model.began > 0.8 * (whole_request.ended - whole_request.began),
    )


@_incident(1)
async def incident_a_tool_leaks(stage: Stage) -> float:
    """A tool keeps 3 MiB at each call, among ten times as many calls of another one."""
    signals = await _signals(stage, **stage.tool("leaking", _LEAKING))
    before = await signals.metric("toolchat_memory_bytes")
    for second in range(6):
        await _called(stage, signals.service, "works", 30)
        await _called(stage, signals.service, "leaks", 3 * (second % 2))
    grown = 0.0

    async def has_grown() -> bool:
        nonlocal grown
        grown = await signals.metric("toolchat_memory_bytes") - before
        return grown > 50 * 2**20

    await until(has_grown)
    stage.note = f"{grown / 2**20:.0f} MiB"
    return _named(metrics=await signals.metric("toolchat_tool_calls_total", tool="leaks") > 0)


async def _called(stage: Stage, service: Service, tool: str, questions: int) -> None:
    stage.upstream.behave = calling(tool, tool, tool)
    replies = await asyncio.gather(*(service.ask("/leaking/chat-tool-function") for _ in range(questions)))
    wrong = [each.text for each in replies if each.text != "Done."]
    held(not wrong, f"answered {wrong[:1]}")


@_incident(2)
async def incident_certificate_expired(stage: Stage) -> float:
    """The provider's certificate has expired."""
    authority = Authority(stage.folder)
    server = await asyncio.start_server(_say_nothing, "127.0.0.1", 0, ssl=authority.server(days=-1))
    async with server:
        url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        signals = await _signals(stage, OPENAI_BASE_URL=url, SSL_CERT_FILE=str(authority.file), BREAKER_FAILURES="2")
        for _ in range(3):
            reply = await signals.service.ask(_CHAT)
            held(reply.code == "upstream-unavailable", f"answered {reply.outcome}")
        await until(lambda: len(signals.log(outcome="upstream-unavailable", level="WARNING")) == 3)
    lines = signals.log(outcome="upstream-unavailable", level="WARNING")
    [first, *_] = await signals.spans("chat ")
    held(await signals.metric("toolchat_breaker_open") == 1, "the metrics do not say which upstream is away")
    held(signals.log(message="circuit open"), "the log does not say that the circuit has opened")
    return _named(
        log="certificate has expired" in lines[0]["cause"],
        traces="certificate has expired" in first.attributes["toolchat.cause"],
    )


async def _say_nothing(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.close()
