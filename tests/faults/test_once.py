"""What must happen once: a tool that runs under an idempotency key, or after an approval."""

import asyncio
import signal
from pathlib import Path

import pytest

from tests.faults.proxy import Proxy
from tests.faults.service import Service
from tests.faults.stage import Stage
from tests.faults.upstream import calling
from tests.faults.wire import Reply
from tests.waiting import until

_TOOL = '''
import asyncio
from pathlib import Path

from toolchat import ToolModule
from toolchat.tool_calling.function_callback import tool

RUNS = Path({runs!r})


@tool(requires_approval=True)
async def fire() -> str:
    """Do what cannot be undone."""
    with RUNS.open("a") as file:
        file.write("x")
    await asyncio.sleep(0.5)
    return "fired"


module = ToolModule(functions=(fire,), default_query="Fire")
'''
_JSON = {"Accept": "application/json"}
_CONFLICT = "409 idempotency-conflict"


def _settings(stage: Stage) -> dict[str, str]:
    """Settings with a tool that counts its runs in a file, which is empty now."""
    _file(stage).write_text("")
    return stage.tool("once", _TOOL.format(runs=str(_file(stage))))


def _file(stage: Stage) -> Path:
    return stage.folder / "runs"


def _runs(stage: Stage) -> int:
    return _file(stage).stat().st_size


async def _other(stage: Stage) -> Service:
    """A replica that shares the Redis of the module."""
    return await stage.service(REDIS_URL=(await stage.shared_redis()).url, **_settings(stage))


async def _slowly_sharing(stage: Stage) -> list[Service]:
    """Two replicas whose Redis answers late, so that requests that come together look up before one has written."""
    proxy = await stage.cleanup.enter_async_context(Proxy((await stage.shared_redis()).port))
    settings = {"REDIS_URL": f"redis://127.0.0.1:{proxy.port}/0", "REDIS_TIMEOUT": "5", **_settings(stage)}
    services = [await stage.own(**settings) for _ in range(2)]
    proxy.mode = "slow"
    return services


async def _fire(service: Service, key: str) -> Reply:
    return await service.ask("/tools/fire", json_body={}, headers={"Idempotency-Key": key})


async def _repeated(stage: Stage, services: list[Service], count: int) -> float:
    key = stage.name()
    replies = await asyncio.gather(*(_fire(services[number % len(services)], key) for number in range(count)))
    assert {each.outcome for each in replies} <= {"200", _CONFLICT}, f"answered { {each.outcome for each in replies} }"
    first = next(each for each in replies if each.status == 200)
    again = await _fire(services[-1], key)
    assert again.headers.get("idempotency-replayed") == "true", f"the repetition was answered {again.outcome}"
    assert again.json()["result"] == first.json()["result"], "the repetition has another result"
    return _runs(stage)


async def test_one_key_fifty_times(stage: Stage) -> None:
    """50 clients run a tool with one `Idempotency-Key`, and one of them does so again."""
    assert await _repeated(stage, [await stage.service(**_settings(stage))], 50) == 1


@pytest.mark.nightly
async def test_one_key_at_two_replicas(stage: Stage) -> None:
    """20 requests run a tool with one `Idempotency-Key` over two replicas whose Redis is slow; one does so again."""
    assert await _repeated(stage, await _slowly_sharing(stage), 20) == 1


@pytest.mark.nightly
async def test_a_key_whose_replica_died(stage: Stage) -> None:
    """SIGKILL to a replica whose tool runs under an `Idempotency-Key`; the request is repeated at another one."""
    other = await _other(stage)
    victim = await stage.own(REDIS_URL=(await stage.shared_redis()).url, **_settings(stage))
    key = stage.name()
    asked = asyncio.create_task(_fire(victim, key))
    await until(lambda: _runs(stage) == 1)
    victim.signal(signal.SIGKILL)
    await asked
    reply = await _when_unlocked(other, key)
    assert reply.outcome == _CONFLICT, f"the repetition was answered {reply.outcome}"
    assert _runs(stage) == 1


async def _when_unlocked(service: Service, key: str) -> Reply:
    """The answer to a repeated request once no replica holds the key's lock."""
    reply: Reply

    async def is_final() -> bool:
        nonlocal reply
        reply = await _fire(service, key)
        return reply.outcome != _CONFLICT or not reply.json()["retryable"]

    await until(is_final)
    return reply


@pytest.mark.nightly
async def test_a_replica_stopped_before_it_claims_a_key(stage: Stage) -> None:
    """A replica that has locked a key is stopped until the lock expires; another runs the request meanwhile (fence)."""
    other = await _other(stage)
    proxy = await stage.cleanup.enter_async_context(Proxy((await stage.shared_redis()).port))
    victim = await stage.own(REDIS_URL=f"redis://127.0.0.1:{proxy.port}/0", **_settings(stage))
    key, stopped, continued = stage.name(), asyncio.Event(), asyncio.Event()

    async def stop(piece: bytes) -> None:
        if b'"question"' in piece and not stopped.is_set():  # the record of the key
            victim.signal(signal.SIGSTOP)
            stopped.set()
            await continued.wait()

    proxy.gate = stop
    late = asyncio.create_task(_fire(victim, key))
    await stopped.wait()
    early = await _when_unlocked(other, key)
    assert early.outcome == "200", f"the other replica answered {early.outcome}"
    victim.signal(signal.SIGCONT)
    continued.set()
    assert (await late).outcome == _CONFLICT, f"the late one was answered {late.result().outcome}"
    assert _runs(stage) == 1


async def _decided(stage: Stage, services: list[Service]) -> float:
    stage.upstream.behave = calling("fire")
    asked = (await services[0].ask("/once/chat-tool-function", headers=_JSON)).json()
    (call,) = asked["approval"]["calls"]
    decision = {"decisions": {call["id"]: {"approved": True}}}
    path = f"/approvals/{asked['approval']['id']}"
    replies = await asyncio.gather(
        *(services[number % len(services)].ask(path, json_body=decision, headers=_JSON) for number in range(10))
    )
    outcomes = sorted(each.outcome for each in replies)
    # Who comes between the claim and the record of the decision is told that there is no such approval.
    refused = {"404 already-decided", "404 not-found"}
    assert outcomes[0] == "200"
    assert refused.issuperset(outcomes[1:])
    return _runs(stage)


async def test_one_approval_ten_times(stage: Stage) -> None:
    """Ten clients approve the same call at once."""
    assert await _decided(stage, [await stage.service(**_settings(stage))]) == 1


@pytest.mark.nightly
async def test_one_approval_at_two_replicas(stage: Stage) -> None:
    """Ten clients approve the same call at once over two replicas whose Redis is slow."""
    assert await _decided(stage, await _slowly_sharing(stage)) == 1
