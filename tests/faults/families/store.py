"""Redis unavailable, slow, full or with invalid values; replicas that share sessions."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

from tests.faults.fault import Bound, Fault, Measure, enter, fault, held
from tests.faults.proxy import Mode, Proxy
from tests.faults.service import Service
from tests.faults.sessions import answers, asks, sharing
from tests.faults.stage import Stage
from tests.faults.upstream import speaking
from tests.faults.waiting import until
from tests.faults.wire import percentile
from tests.players.redis_server import RedisServer

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
    """The family's service, whose Redis answers."""
    service = await sharing(stage)
    held((await service.ask(_CHAT)).status == 200, "it did not work before")
    return service


async def _alone(stage: Stage, *options: str) -> tuple[RedisServer, Service]:
    """A Redis and a service for this row alone, which work."""
    redis = await stage.redis(*options)
    service = await stage.own(REDIS_URL=redis.url)
    await _healed(service)
    return redis, service


@fault(users="503 `store-unavailable`", figure="ms until the last of 20 was refused", at_most=3000, fast=True)
async def redis_stopped(stage: Stage) -> float:
    """Redis is stopped by SIGSTOP; 20 questions in sessions come at once."""
    service = await _working(stage)
    stage.upstream.calls.clear()
    async with _stalled(stage, service):
        replies = await asyncio.gather(*(asks(service, stage.name()) for _ in range(20)))
        asked = len(stage.upstream.calls)
    outcomes = {each.outcome for each in replies}
    held(outcomes == {_GONE}, f"answered {outcomes}")
    held(not asked, "the model was asked all the same")
    return max(each.seconds for each in replies) * 1000


@fault(users="503 at once", figure="ms, the 95th percentile of 50, of 500 ms that Redis is given", at_most=250)
async def redis_known_to_be_stopped(stage: Stage) -> float:
    """Redis is stopped by SIGSTOP; the service has noticed already."""
    service = await _working(stage)
    async with _stalled(stage, service):
        await asks(service, stage.name())
        replies = [await asks(service, stage.name()) for _ in range(50)]
    outcomes = {each.outcome for each in replies}
    held(outcomes == {_GONE}, f"answered {outcomes}")
    return percentile([each.seconds * 1000 for each in replies], 0.95)


@fault(users="they notice nothing", figure="ms, the 95th percentile of 50", at_most=500, fast=True)
async def questions_without_a_session_while_redis_is_stopped(stage: Stage) -> float:
    """Redis is stopped by SIGSTOP; 50 questions that need no session."""
    service = await _working(stage)
    async with _stalled(stage, service):
        replies = [await service.ask("/time/chat?query=hi") for _ in range(50)]
    held(all(each.status == 200 for each in replies), "one was not answered")
    return percentile([each.seconds * 1000 for each in replies], 0.95)


@fault(users="an answer that cannot be kept is an error", figure="s from the stop to the end", at_most=8)
async def redis_stopped_in_mid_turn(stage: Stage) -> float:
    """Redis is stopped by SIGSTOP while the model speaks."""
    service = await sharing(stage)
    stage.upstream.behave = speaking(lambda _: "abcdefghij", pieces=10, pause=0.3)
    asked = asyncio.create_task(service.ask("/chat/stream?userInput=hi", session=stage.name()))
    await until(lambda: stage.upstream.open == 1)
    async with _stalled(stage, service):
        began = time.monotonic()
        reply = await asked
        held(reply.outcome == "200 error store-unavailable", f"answered {reply.outcome}")
        return time.monotonic() - began


@fault(users="503, then the session goes on", figure="s until it was answered, of 4.5 s that a lock lasts", at_most=3.5)
async def a_session_after_a_stall(stage: Stage) -> float:
    """Redis stalls for 3 s as a turn of the session begins, and grants its lock afterwards; the user asks again."""
    service = await sharing(stage)
    session = stage.name()
    redis = await stage.shared_redis()
    held((await asks(service, session, "first")).status == 200, "it did not work before")
    redis.freeze()
    refused = await asks(service, session, "refused")
    await asyncio.sleep(2.5)
    redis.thaw()
    began = time.monotonic()
    await until(lambda: answers(service, session))
    took = time.monotonic() - began
    held(refused.outcome == _GONE, f"answered {refused.outcome}")
    texts = [one["text"] for one in (await service.ask(f"/chat/{session}")).json()["messages"] if one["role"] == "user"]
    held(texts == ["first", "hi"], f"stored is {texts}")
    return took


@fault(users="503, then all is well by itself", figure="s until it was found again", at_most=12)
async def redis_killed_and_started_again(stage: Stage) -> float:
    """Redis is killed by SIGKILL and comes back empty."""
    redis, service = await _alone(stage)
    await redis.kill()
    refused = await service.ask(_CHAT)
    held(refused.outcome == _GONE, f"answered {refused.outcome}")
    await redis.start()
    return await _healed(service)


@fault(users="it starts; sessions get 503 until Redis is there", figure="s until it was found", at_most=12)
async def redis_away_at_the_start(stage: Stage) -> float:
    """Redis is not there when the service starts."""
    redis = await stage.redis()
    await redis.kill()
    service = await stage.own(REDIS_URL=redis.url)
    held((await service.ask(_CHAT)).outcome == _GONE, "a session was not refused")
    held((await service.ask("/time/chat?query=hi")).status == 200, "a question without one was not answered")
    await redis.start()
    return await _healed(service)


@fault(users="the service says that it is degraded", figure="lines of the log about it", at_least=1, at_most=2)
async def no_silent_degradation(stage: Stage) -> float:
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
    held(ready.get("status") == "degraded", f"ready says {ready}")
    held(up == 0, "the figure says that the store is up")
    return sum("the state store cannot be used" in line for line in service.written(begin).splitlines())


@fault(users="503 for what has to be kept", figure="answers other than 200 or 503, of 40", at_most=0)
async def redis_is_full(stage: Stage) -> float:
    """Redis has 64 KiB of memory left, and evicts nothing; 40 sessions keep 3,000 characters each."""
    redis, service = await _alone(stage, "--maxmemory-policy", "noeviction")
    info = await redis.run("INFO", "memory")
    used = int(info["used_memory"]) if isinstance(info, dict) else 0
    await redis.run("CONFIG", "SET", "maxmemory", str(used + 2**16))
    replies = [await asks(service, stage.name(), "x" * 3000) for _ in range(40)]
    held((await service.ask("/health/live")).status == 200, "it does not answer any more")
    outcomes = [each.outcome for each in replies]
    held({"200", _GONE} <= set(outcomes), f"answered {set(outcomes)}")
    return sum(each not in ("200", _GONE) for each in outcomes)


@fault(users="409 `session-busy` for the earlier turn", figure="turns stored, of one since then", at_least=1, at_most=1)
async def redis_flushed_in_mid_turn(stage: Stage) -> float:
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
    held(later.outcome == "200", f"the later turn was answered {later.outcome}")
    held((await asked).outcome == "409 session-busy", f"the earlier turn was answered {asked.result().outcome}")
    texts = [one["text"] for one in (await first.ask(f"/chat/{session}")).json()["messages"]]
    held(texts == ["later", "Later."], f"stored is {texts}")
    return len(texts) / 2


@fault(users="503, and their words name no password", figure="ms until refused", at_most=3000)
async def redis_wants_another_password(stage: Stage) -> float:
    """Redis has another password than the service was given."""
    redis = await stage.redis("--requirepass", "right")
    service = await stage.own(REDIS_URL=redis.url.replace("redis://", "redis://:wrong-canary@"))
    reply = await service.ask(_CHAT)
    held(reply.outcome == _GONE, f"answered {reply.outcome}")
    held("canary" not in reply.text + service.written(), "the password was shown")
    return reply.seconds * 1000


@fault(users="503 for what has to be kept", figure="ms until refused", at_most=3000)
async def redis_became_a_replica(stage: Stage) -> float:
    """Redis takes no writes any more, as after a fail-over."""
    redis, service = await _alone(stage)
    await redis.run("REPLICAOF", "127.0.0.1", "1")
    reply = await service.ask(_CHAT)
    held(reply.outcome == _GONE, f"answered {reply.outcome}")
    await redis.run("REPLICAOF", "NO", "ONE")
    await _healed(service)
    return reply.seconds * 1000


@fault(users="they notice nothing or ask again", figure="s until sessions worked again", at_most=6)
async def connections_to_redis_are_killed(stage: Stage) -> float:
    """CLIENT KILL ends all connections while 20 turns run."""
    service = await sharing(stage)
    redis = await stage.shared_redis()
    stage.upstream.behave = speaking(lambda _: "Hello.", first=0.3)
    asked = [asyncio.create_task(asks(service, stage.name())) for _ in range(20)]
    await until(lambda: stage.upstream.open == 20)
    await redis.run("CLIENT", "KILL", "TYPE", "normal")
    replies = await asyncio.gather(*asked)
    outcomes = {each.outcome for each in replies}
    held(outcomes <= {"200", _GONE}, f"answered {outcomes}")
    return await _healed(service)


_SPOILT = ('[[{"role":"user","text":5}]]', '{"a":1}', "5", "null", '["x"]', "nonsense", "[" * 5000, "\x00")


@fault(users="503 there, and nowhere else", figure="other sessions that were refused, of 16", at_most=0, fast=True)
async def spoilt_values(stage: Stage) -> float:
    """Everything that is kept of a session is written over with 8 kinds of nonsense, fences included."""
    service = await sharing(stage)
    redis = await stage.shared_redis()
    hurt = 0
    for spoilt in _SPOILT:
        session, other = stage.name(), stage.name()
        await asyncio.gather(asks(service, session), asks(service, other))
        for key in await _keys(redis, session):
            await redis.run("SET", key, spoilt)
        for reply in (await asks(service, session), await service.ask(f"/chat/{session}")):
            held(reply.outcome == _GONE, f"answered {reply.outcome} for {spoilt[:20]}")
        for reply in (await asks(service, other), await asks(service, stage.name())):
            hurt += reply.status != 200
    return hurt


@fault(users="503 there, and nowhere else", figure="ms until refused or answered", at_most=3000)
async def values_of_another_kind(stage: Stage) -> float:
    """A list lies in Redis where the service keeps texts."""
    service = await sharing(stage)
    redis = await stage.shared_redis()
    session = stage.name()
    await asks(service, session)
    for key in await _keys(redis, session):
        await redis.run("DEL", key)
        await redis.run("LPUSH", key, "x")
    reply = await asks(service, session)
    held(reply.outcome == _GONE, f"answered {reply.outcome}")
    held((await asks(service, stage.name())).status == 200, "another session was refused")
    return reply.seconds * 1000


async def _keys(redis: RedisServer, session: str) -> list[str]:
    keys = await redis.run("KEYS", f"*{session}*")
    return [key.decode() for key in keys if isinstance(key, bytes)] if isinstance(keys, list) else []


def _through(mode: Mode, outcome: str, calls: int) -> Measure:
    async def measure(stage: Stage) -> float:
        redis = await stage.shared_redis()
        proxy = await stage.row.enter_async_context(Proxy(redis.port))
        service = await stage.own(REDIS_URL=f"redis://127.0.0.1:{proxy.port}/0")
        await _healed(service)
        sessions = [stage.name() for _ in range(6)]
        for session in sessions:
            held((await asks(service, session, f"first-of-{session}")).status == 200, "it did not work before")
        stage.upstream.calls.clear()
        proxy.mode = mode
        if mode == "refuse":
            proxy.cut()
        outcomes = [(await asks(service, session, f"next-of-{session}")).outcome for session in sessions]
        held(set(outcomes) == {outcome}, f"answered {sorted(set(outcomes))}")
        held(len(stage.upstream.calls) <= calls, f"the model was asked {len(stage.upstream.calls)} times")
        for body in stage.upstream.calls:
            texts = [one["content"] for one in body["messages"] if one["role"] == "user"]
            held(
                texts[0].removeprefix("first-of-") == texts[-1].removeprefix("next-of-"), f"the model was shown {texts}"
            )
        proxy.mode = "pass"
        return await _healed(service)

    return measure


# What happens to Redis' replies, the outcome of six questions in sessions, and how often the model is asked for them.
_PROXIED: dict[Mode, tuple[str, str, int]] = {
    "stall": ("Bytes from and to Redis stall", _GONE, 0),
    "refuse": ("Connections to Redis are reset as soon as they are made", _GONE, 0),
    "drip": ("Redis' replies come one byte each 5 ms", _GONE, 0),
    "garbage": ("Redis' replies are garbage", _GONE, 0),
    "half": ("Redis' replies are cut in the middle by a reset", _GONE, 0),
    "double": ("Redis' replies come twice each", _GONE, 6),
    "slow": ("Redis' replies come 0.2 s late", "200", 6),
}
for _mode, (_done, _outcome, _calls) in _PROXIED.items():
    _users = "an answer of their own session" if _outcome == "200" else "503 `store-unavailable`"
    _measure = _through(_mode, _outcome, _calls)
    enter(
        Fault(
            "store",
            f"redis-replies-{_mode}",
            _done,
            _users,
            "s until all was well afterwards",
            Bound(None, 12),
            _measure,
        )
    )


@fault(users="what is old is forgotten", figure="conversations left in Redis, of 200", at_most=0)
async def sessions_expire(stage: Stage) -> float:
    """200 sessions with a `SESSION_TTL` of 1 s; that their locks were released is remembered for an hour."""
    redis = await stage.redis()
    service = await stage.own(REDIS_URL=redis.url, SESSION_TTL="1")
    await asyncio.gather(*(asks(service, stage.name()) for _ in range(200)))
    began = time.monotonic()

    async def size() -> float:
        keys = await redis.run("KEYS", "*")
        return sum(b":lock:" not in key for key in keys) if isinstance(keys, list) else -1

    async def none() -> bool:
        return await size() == 0

    with suppress(TimeoutError):
        await until(none)
    stage.note = f"after {time.monotonic() - began:.1f} s"
    return await size()
