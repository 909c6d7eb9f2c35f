"""Redis unavailable, slow, full or with invalid values; replicas that share sessions."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from tests.faults.proxy import Mode, Proxy
from tests.faults.service import Service
from tests.faults.sessions import answers, asks, sharing
from tests.faults.stage import Stage
from tests.faults.upstream import speaking
from tests.faults.wire import percentile
from tests.players.redis_server import RedisServer
from tests.waiting import until

_CHAT = "/chat?userInput=hi&sessionId=asked"
_GONE = "503 store-unavailable"


async def _works(service: Service) -> bool:
    return (await service.ready()).get("status") == "ok" and (await service.ask(_CHAT)).status == 200


async def _healed(service: Service) -> float:
    began = time.monotonic()
    await until(lambda: _works(service))
    return time.monotonic() - began


@asynccontextmanager
async def _stalled(stage: Stage, service: Service) -> AsyncGenerator[None, None]:
    """Redis stopped by a signal; in the end it goes on, and the service has found it again."""
    redis = await stage.shared_redis()
    redis.freeze()
    try:
        yield
    finally:
        redis.thaw()
        await _healed(service)


async def _working(stage: Stage) -> Service:
    """The service of the module, whose Redis answers."""
    service = await sharing(stage)
    assert (await service.ask(_CHAT)).status == 200, "it did not work before"
    return service


async def _alone(stage: Stage, *options: str) -> tuple[RedisServer, Service]:
    """A Redis and a service for this test alone, which work."""
    redis = await stage.redis(*options)
    service = await stage.own(REDIS_URL=redis.url)
    await _healed(service)
    return redis, service


async def test_redis_stopped(stage: Stage) -> None:
    """Redis is stopped by SIGSTOP; 20 questions in sessions come at once."""
    service = await _working(stage)
    stage.upstream.calls.clear()
    async with _stalled(stage, service):
        replies = await asyncio.gather(*(asks(service, stage.name()) for _ in range(20)))
        asked = len(stage.upstream.calls)
    outcomes = {each.outcome for each in replies}
    assert outcomes == {_GONE}, f"answered {outcomes}"
    assert not asked, "the model was asked all the same"
    assert max(each.seconds for each in replies) * 1000 <= 3000


async def test_questions_without_a_session_while_redis_is_stopped(stage: Stage) -> None:
    """Redis is stopped by SIGSTOP; 50 questions that need no session."""
    service = await _working(stage)
    async with _stalled(stage, service):
        replies = [await service.ask("/time/chat?query=hi") for _ in range(50)]
    assert all(each.status == 200 for each in replies), "one was not answered"
    assert percentile([each.seconds * 1000 for each in replies], 0.95) <= 500


@pytest.mark.nightly
async def test_redis_stopped_in_mid_turn(stage: Stage) -> None:
    """Redis is stopped by SIGSTOP while the model speaks."""
    service = await sharing(stage)
    stage.upstream.behave = speaking(lambda _: "abcdefghij", pieces=10, pause=0.3)
    asked = asyncio.create_task(service.ask("/chat/stream?userInput=hi", session=stage.name()))
    await until(lambda: stage.upstream.open == 1)
    async with _stalled(stage, service):
        began = time.monotonic()
        reply = await asked
        assert reply.outcome == "200 error store-unavailable", f"answered {reply.outcome}"
        assert time.monotonic() - began <= 8


@pytest.mark.nightly
async def test_a_session_after_a_stall(stage: Stage) -> None:
    """Redis stalls for 3 s as a turn of the session begins, and grants its lock afterwards; the user asks again."""
    service = await sharing(stage)
    session = stage.name()
    redis = await stage.shared_redis()
    assert (await asks(service, session, "first")).status == 200, "it did not work before"
    redis.freeze()
    refused = await asks(service, session, "refused")
    await asyncio.sleep(2.5)
    redis.thaw()
    began = time.monotonic()
    await until(lambda: answers(service, session))
    took = time.monotonic() - began
    assert refused.outcome == _GONE, f"answered {refused.outcome}"
    texts = [one["text"] for one in (await service.ask(f"/chat/{session}")).json()["messages"] if one["role"] == "user"]
    assert texts == ["first", "hi"], f"stored is {texts}"
    assert took <= 3.5


@pytest.mark.nightly
async def test_redis_killed_and_started_again(stage: Stage) -> None:
    """Redis is killed by SIGKILL and comes back empty."""
    redis, service = await _alone(stage)
    await redis.kill()
    refused = await service.ask(_CHAT)
    assert refused.outcome == _GONE, f"answered {refused.outcome}"
    await redis.start()
    assert await _healed(service) <= 12


@pytest.mark.nightly
async def test_no_silent_degradation(stage: Stage) -> None:
    """Redis is away for 6 s, with questions all the time; probes, figures and the log must say so."""
    redis, service = await _alone(stage)
    begin = service.log.stat().st_size
    redis.freeze()
    end = time.monotonic() + 6
    while time.monotonic() < end:
        await service.ask(_CHAT)
    ready = await service.ready()
    up = (await service.figures())["toolchat_state_store_up"]
    redis.thaw()
    assert ready.get("status") == "degraded", f"ready says {ready}"
    assert up == 0, "the figure says that the store is up"
    assert 1 <= sum("the state store cannot be used" in line for line in service.written(begin).splitlines()) <= 2


@pytest.mark.nightly
async def test_redis_is_full(stage: Stage) -> None:
    """Redis has 64 KiB of memory left, and evicts nothing; 40 sessions keep 3,000 characters each."""
    redis, service = await _alone(stage, "--maxmemory-policy", "noeviction")
    info = await redis.run("INFO", "memory")
    used = int(info["used_memory"]) if isinstance(info, dict) else 0
    await redis.run("CONFIG", "SET", "maxmemory", str(used + 2**16))
    replies = [await asks(service, stage.name(), "x" * 3000) for _ in range(40)]
    assert (await service.ask("/health/live")).status == 200, "it does not answer any more"
    outcomes = [each.outcome for each in replies]
    assert {"200", _GONE} <= set(outcomes), f"answered {set(outcomes)}"
    assert sum(each not in ("200", _GONE) for each in outcomes) == 0


@pytest.mark.nightly
async def test_redis_flushed_in_mid_turn(stage: Stage) -> None:
    """FLUSHALL while the fourth turn of a session runs; another replica takes the session before it ends."""
    first, second = [await sharing(stage, number) for number in range(2)]
    redis = await stage.shared_redis()
    session = stage.name()
    for _ in range(3):
        await asks(first, session)
    stage.upstream.behave = speaking(lambda _: "Earlier.", first=1)
    asked = asyncio.create_task(asks(first, session, "earlier"))
    await until(lambda: stage.upstream.open == 1)
    await redis.run("FLUSHALL")
    stage.upstream.behave = speaking(lambda _: "Later.")
    later = await asks(second, session, "later")
    assert later.outcome == "200", f"the later turn was answered {later.outcome}"
    assert (await asked).outcome == "409 session-busy", f"the earlier turn was answered {asked.result().outcome}"
    texts = [one["text"] for one in (await first.ask(f"/chat/{session}")).json()["messages"]]
    assert texts == ["later", "Later."], f"stored is {texts}"
    assert len(texts) / 2 == 1


@pytest.mark.nightly
async def test_connections_to_redis_are_killed(stage: Stage) -> None:
    """CLIENT KILL ends all connections while 20 turns run."""
    service = await sharing(stage)
    redis = await stage.shared_redis()
    stage.upstream.behave = speaking(lambda _: "Hello.", first=0.3)
    asked = [asyncio.create_task(asks(service, stage.name())) for _ in range(20)]
    await until(lambda: stage.upstream.open == 20)
    await redis.run("CLIENT", "KILL", "TYPE", "normal")
    replies = await asyncio.gather(*asked)
    outcomes = {each.outcome for each in replies}
    assert outcomes <= {"200", _GONE}, f"answered {outcomes}"
    assert await _healed(service) <= 6


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("mode", "outcome", "calls"),
    [
        ("stall", _GONE, 0),
        ("refuse", _GONE, 0),
        ("drip", _GONE, 0),
        ("garbage", _GONE, 0),
        ("half", _GONE, 0),
        ("double", _GONE, 6),
        ("slow", "200", 6),
    ],
)
async def test_replies_of_redis_that_are_spoilt_mix_no_sessions(
    mode: Mode, outcome: str, calls: int, stage: Stage
) -> None:
    redis = await stage.shared_redis()
    proxy = await stage.cleanup.enter_async_context(Proxy(redis.port))
    service = await stage.own(REDIS_URL=f"redis://127.0.0.1:{proxy.port}/0")
    await _healed(service)
    sessions = [stage.name() for _ in range(6)]
    for session in sessions:
        assert (await asks(service, session, f"first-of-{session}")).status == 200, "it did not work before"
    stage.upstream.calls.clear()
    proxy.mode = mode
    if mode == "refuse":
        proxy.cut()
    assert {(await asks(service, session, f"next-of-{session}")).outcome for session in sessions} == {outcome}
    assert len(stage.upstream.calls) <= calls
    for body in stage.upstream.calls:
        texts = [one["content"] for one in body["messages"] if one["role"] == "user"]
        assert texts[0].removeprefix("first-of-") == texts[-1].removeprefix("next-of-"), texts
    proxy.mode = "pass"
    assert await _healed(service) <= 12
