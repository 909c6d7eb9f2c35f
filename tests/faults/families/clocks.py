"""Clocks that are set: forward by days, back by days, while questions run and things are kept.

libfaketime, of the environment of the benchmark's peers, shows a process another time of day than the system's; a file
says which, and is read anew for each look. Clocks that only run on stay as they are, as they do
where an administrator sets a machine's time.
"""

import asyncio
import hashlib
import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.command_line import with_tools
from tests.faults.fault import fault, held
from tests.faults.history import Session, remembering
from tests.faults.service import PEERS, Service
from tests.faults.sessions import ROOMY, asks
from tests.faults.stage import Stage
from tests.faults.upstream import calling, playing, speaking
from tests.faults.waiting import until
from tests.faults.wire import Reply
from tests.players.openai_player import Answer

_DAY = 86400
_JSON = {"Accept": "application/json"}
_KEY = "tc_lab_clocks_0123456789abcdef0123456789"
_FIRES = '''
from toolchat.tool_calling.function_callback import tool
from toolchat import ToolModule


@tool(requires_approval=True)
async def fires() -> str:
    """Do what cannot be taken back."""
    return "fired"


module = ToolModule(functions=(fires,), default_query="Go")
'''


class _Clock:
    """What a service takes for the time of day."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.set(0)

    def set(self, seconds: int) -> None:
        """So much later than it is, or earlier."""
        other = self._path.with_suffix(".new")
        other.write_text(f"{seconds:+d}\n", encoding="ascii")
        other.replace(self._path)

    def variables(self) -> dict[str, str]:
        """What a process needs to be shown it."""
        libraries = sorted(PEERS.glob("lib/python*/site-packages/libfaketime/vendor/libfaketime/src/libfaketime.so.1"))
        held(libraries, "libfaketime is not installed: make benchmarks/.venv/.peers")
        fixed = {"FAKETIME_NO_CACHE": "1", "DONT_FAKE_MONOTONIC": "1", "NO_FAKE_STAT": "1"}
        return {"LD_PRELOAD": str(libraries[0]), "FAKETIME_TIMESTAMP_FILE": str(self._path), **fixed}


async def _clocked(stage: Stage, **variables: str) -> tuple[Service, _Clock]:
    """A service for this row alone whose clock can be set."""
    clock = _Clock(stage.folder / f"{stage.name()}.clock")
    return await stage.own(**clock.variables(), **variables), clock


@fault(users="nothing", figure="of 4 turns that were remembered", at_least=4, at_most=4, peer=True)
async def a_session_while_the_clock_is_set(stage: Stage) -> float:
    """Between the turns of a session the clock is set forward by two days, back by four, and right again."""
    service, clock = await _clocked(stage)
    session = stage.name()
    for turn, offset in enumerate((0, 2 * _DAY, -2 * _DAY, 0)):
        clock.set(offset)
        reply = await asks(service, session, f"turn{turn}")
        held(reply.status == 200, f"answered {reply.outcome}")
    texts = [each["content"] for each in stage.upstream.calls[-1]["messages"] if each["role"] == "user"]
    return len(texts)


@fault(users="nothing", figure="acknowledged turns lost or out of order", at_most=0, peer=True)
async def replicas_whose_clocks_differ(stage: Stage) -> float:
    """40 questions of one session over two replicas that share a Redis; one's clock is two days ahead."""
    redis = await stage.shared_redis()
    (late, clock), (right, _) = [await _clocked(stage, REDIS_URL=redis.url, **ROOMY) for _ in range(2)]
    clock.set(2 * _DAY)
    stage.upstream.behave = speaking(remembering)
    session = Session(stage.name())
    for number in range(40):
        sent = time.monotonic()
        reply = await asks((late, right)[number % 2], session.identifier, f"q{number}")
        session.add(f"q{number}", sent, reply.text if reply.status == 200 else None)
    held(sum(turn.acknowledged for turn in session.turns) > 20, "hardly a question was answered")
    await until(lambda: _is_kept(right, session))
    kept = (await right.ask(f"/chat/{session.identifier}")).json()["messages"]
    faults = session.faults(kept)
    held(not faults, "; ".join(faults[:3]))
    return len(faults)


async def _is_kept(service: Service, session: Session) -> bool:
    return (await service.ask(f"/chat/{session.identifier}")).status == 200


@fault(users="every stream is finished", figure="of 20 streams", at_least=20, peer=True)
async def streams_while_the_clock_is_set(stage: Stage) -> float:
    """In the middle of 20 streams of 3 s the clock is set forward by two days, and back by four."""
    service, clock = await _clocked(stage)
    stage.upstream.behave = speaking(lambda _: "abcdefghij", pieces=10, pause=0.3)
    headers = {"Accept": "text/event-stream"}
    asked = [asyncio.create_task(service.ask("/time/chat?query=hi", headers=headers)) for _ in range(20)]
    await until(lambda: len(stage.upstream.calls) == 20)
    for offset in (2 * _DAY, -2 * _DAY):
        clock.set(offset)
        await asyncio.sleep(1)
    return sum(each.last == "done" for each in await asyncio.gather(*asked))


async def _alarms(service: Service, tenant: str) -> list[str]:
    return [each["status"] for each in (await service.ask("/tool/alarms", headers={"X-Tenant-ID": tenant})).json()]


async def _set_alarm(service: Service, tenant: str, key: str) -> Reply:
    headers = {"Idempotency-Key": key, "X-Tenant-ID": tenant, **_JSON}
    return await service.ask("/tool/alarm", json_body={"query": "in an hour"}, headers=headers)


@fault(
    users="its status is `fired` when the clock says so", figure="s until its status was `fired`", at_most=10, peer=True
)
async def an_alarm_that_the_clock_passes(stage: Stage) -> float:
    """An alarm is an hour ahead; the clock is set back by a day, and then forward by two hours."""
    service, clock = await _clocked(stage)
    stage.upstream.behave = calling("setAlarm", time="PT1H")
    tenant = stage.name()
    reply = await _set_alarm(service, tenant, stage.name())
    held(reply.status == 200, f"answered {reply.outcome}")
    clock.set(-_DAY)
    held(await _alarms(service, tenant) == ["waiting"], "it was due too early")
    clock.set(2 * 3600)
    began = time.monotonic()

    async def is_fired() -> bool:
        return await _alarms(service, tenant) == ["fired"]

    await until(is_fired)
    return time.monotonic() - began


@fault(users="the first answer again", figure="alarms that were set", at_least=1, at_most=1, peer=True)
async def a_repeated_key_after_the_clock_was_set(stage: Stage) -> float:
    """A request is repeated with its `Idempotency-Key` an hour later and a day earlier by the clock."""
    service, clock = await _clocked(stage)
    stage.upstream.behave = calling("setAlarm", time="P3D")
    tenant, key = stage.name(), stage.name()
    first = await _set_alarm(service, tenant, key)
    for offset in (3600, -_DAY):
        clock.set(offset)
        again = await _set_alarm(service, tenant, key)
        held(again.headers.get("idempotency-replayed") == "true", f"answered {again.outcome}")
        held(again.json()["answer"] == first.json()["answer"], "answered something else")
    return len(await _alarms(service, tenant))


@fault(users="it can be given all the same", figure="of 2 approvals that counted", at_least=2, at_most=2, peer=True)
async def an_approval_after_the_clock_was_set(stage: Stage) -> float:
    """A tool call waits for its approval while the clock is set back by a day; another while it is set forward."""
    service, clock = await _clocked(stage, **with_tools(stage.folder, {"faulty": _FIRES}))
    stage.upstream.behave = calling("fires")
    done = 0
    for offset in (-_DAY, _DAY):
        clock.set(0)
        approval = (await service.ask("/faulty/chat-tool-function", headers=_JSON)).json()["approval"]
        clock.set(offset)
        decisions = {"decisions": {call["id"]: {"approved": True} for call in approval["calls"]}}
        reply = await service.ask(f"/approvals/{approval['id']}", json_body=decisions, headers=_JSON)
        done += reply.status == 200 and [each["outcome"] for each in reply.json()["tool_calls"]] == ["ok"]
    return done


@fault(users="429, for a minute at most", figure="s, the longest `Retry-After`", at_least=1, at_most=60, peer=True)
async def a_rate_limit_while_the_clock_is_set(stage: Stage) -> float:
    """A client has used its 3 questions a minute up; the clock is set back by a day, and forward by an hour."""
    service, clock = await _clocked(stage, REQUESTS_PER_MINUTE="3")
    for _ in range(3):
        held((await service.ask("/time/chat?query=hi")).status == 200, "it was refused too early")
    waits = []
    for offset in (-_DAY, 3600):
        clock.set(offset)
        reply = await service.ask("/time/chat?query=hi")
        held(reply.status == 429, f"answered {reply.status}")
        waits.append(int(reply.headers["retry-after"]))
    return max(waits)


@fault(
    users="401 from then on, by the clock",
    figure="of 3 requests that were answered as the clock says",
    at_least=3,
    peer=True,
)
async def a_key_that_expires_by_the_clock(stage: Stage) -> float:
    """A key expires in an hour; the clock is set forward by two hours, and right again."""
    expires = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)
    digest = hashlib.sha256(_KEY.encode()).hexdigest()
    file = stage.folder / "keys.toml"
    entry = f'[[keys]]\nname = "me"\nsha256 = "{digest}"\nexpires = {expires.isoformat()}\n'
    await asyncio.to_thread(file.write_text, entry, encoding="utf-8")
    service, clock = await _clocked(stage, API_KEYS_FILE=os.fspath(file))
    right = 0
    for offset, status in ((0, 200), (2 * 3600, 401), (0, 200)):
        clock.set(offset)
        reply = await service.ask("/time/chat?query=hi", headers={"Authorization": f"Bearer {_KEY}"})
        right += reply.status == status
    return right


@fault(
    users="the provider is tried again when its pause is over", figure="s until it was, of 10 s", at_most=19, peer=True
)
async def a_breaker_while_the_clock_is_set(stage: Stage) -> float:
    """The provider has failed so often that it is not asked for ten seconds; then the clock is set back by a day."""
    service, clock = await _clocked(stage, BREAKER_FAILURES="2", MODEL_MAX_ATTEMPTS="1")

    async def answered() -> bool:
        return (await service.ask("/time/chat?query=hi")).status == 200

    stage.upstream.behave = playing(Answer([b"no"], 500))
    for _ in range(3):
        await service.ask("/time/chat?query=hi")
    held(len(stage.upstream.calls) == 2, f"the provider was asked {len(stage.upstream.calls)} times")
    clock.set(-_DAY)
    stage.upstream.behave = speaking(lambda _: "Well again.")
    began = time.monotonic()
    await until(answered)
    return time.monotonic() - began
