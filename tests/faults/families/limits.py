"""One client against all others, and more questions than there are places."""

import asyncio
import hashlib
import json
import time

from tests.faults.fault import fault, held
from tests.faults.service import Service
from tests.faults.stage import Stage
from tests.faults.upstream import frozen, speaking, text_of
from tests.faults.waiting import until
from tests.faults.wire import Reply, percentile

_OTHER = "127.0.0.2"
_LIMITED = "429 quota-exceeded"
_SMALL = {"MAX_QUESTIONS": "20", "STATE_URL": "memory://?max_mb=1", "SESSION_WAIT": "1"}


async def _asked(service: Service, count: int, path: str = "/time/chat?query=hi") -> list[Reply]:
    return await asyncio.gather(*(service.ask(path) for _ in range(count)))


@fault(users="they are answered", figure="ms until another client was", at_most=2000, fast=True)
async def one_client_takes_all_places(stage: Stage) -> float:
    """One address keeps 30 questions open where there are 20 places; another asks one."""
    service = await stage.service(**_SMALL)
    stage.upstream.behave = frozen
    crowd = [asyncio.create_task(service.ask("/time/chat?query=hi")) for _ in range(30)]
    await until(lambda: stage.upstream.open == 10)
    stage.upstream.behave = speaking(lambda _: "Hello.")
    other = await service.ask("/time/chat?query=hi", source=_OTHER)
    for each in crowd:
        each.cancel()
    held(other.status == 200, f"the other was answered {other.outcome}")
    return other.seconds * 1000


@fault(users="503 `overloaded` with `Retry-After`", figure="ms until the last was refused", at_most=3000, fast=True)
async def more_questions_than_places(stage: Stage) -> float:
    """210 questions of three addresses where there are 20 places, with a provider that is silent."""
    service = await stage.service(**_SMALL)
    stage.upstream.behave = frozen
    asked = [
        asyncio.create_task(service.ask("/time/chat?query=hi", source=source))
        for source in ("127.0.0.1", _OTHER, "127.0.0.3")
        for _ in range(70)
    ]
    await until(lambda: stage.upstream.open + sum(each.done() for each in asked) == 210)
    refused = [each.result() for each in asked if each.done()]
    held(stage.upstream.open == 20, f"{stage.upstream.open} were let in")
    for each in asked:
        each.cancel()
    wrong = [each for each in refused if each.outcome != "503 overloaded" or "retry-after" not in each.headers]
    held(not wrong, f"answered {wrong[0].outcome if wrong else ''}, perhaps without Retry-After")
    return max(each.seconds for each in refused) * 1000


@fault(users="answered", figure="ms, the 95th percentile of 50 probes", at_most=1000)
async def probes_while_saturated(stage: Stage) -> float:
    """`/health/live` is asked while 40 clients ask as fast as they can where there are 20 places."""
    service = await stage.service(**_SMALL)
    stage.upstream.behave = speaking(lambda _: "Hello.", first=0.05)
    stop = asyncio.Event()

    async def press() -> None:
        while not stop.is_set():
            await service.ask("/time/chat?query=hi")

    crowd = [asyncio.create_task(press()) for _ in range(40)]
    took = [(await service.ask("/health/live")).seconds * 1000 for _ in range(50)]
    stop.set()
    await asyncio.gather(*crowd)
    return percentile(took, 0.95)


@fault(users="as many good answers as at the limit", figure="of the goodput at 1x, at 4x the load", at_least=0.5)
async def goodput_beyond_capacity(stage: Stage) -> float:
    """Four times as many clients ask as there are places for; the refused wait for 50 ms and ask again."""
    service = await stage.service(**_SMALL)
    stage.upstream.behave = speaking(lambda _: "Hello.", first=0.1)
    once = await _goodput(service, 10)
    return await _goodput(service, 40) / once


async def _goodput(service: Service, clients: int, seconds: float = 3) -> float:
    good, end = 0, time.monotonic() + seconds

    async def press(number: int) -> None:
        nonlocal good
        while time.monotonic() < end:
            reply = await service.ask("/time/chat?query=hi", source=f"127.0.0.{number % 4 + 1}")
            held(reply.status in (200, 429, 503), f"answered {reply.status}")
            good += reply.status == 200
            await asyncio.sleep(0 if reply.status == 200 else 0.05)

    await asyncio.gather(*(press(number) for number in range(clients)))
    return good / seconds


@fault(
    users="their conversations are kept", figure="conversations of others that are lost, of 10", at_most=0, fast=True
)
async def one_client_makes_sessions_without_end(stage: Stage) -> float:
    """One address makes 300 sessions where 100 fit; another has 10 of them."""
    service = await stage.service(**_SMALL)
    own = [stage.name() for _ in range(10)]
    for session in own:
        reply = await service.ask("/chat?userInput=hi", session=session, source=_OTHER)
        held(reply.status == 200, f"answered {reply.outcome}")
    for _ in range(30):
        replies = await asyncio.gather(*(service.ask("/chat?userInput=hi", session=stage.name()) for _ in range(10)))
        held(all(each.status == 200 for each in replies), f"the first address was answered {replies[0].status}")
    kept = [await service.ask(f"/chat/{session}", source=_OTHER) for session in own]
    return sum(each.status != 200 for each in kept)


@fault(users="409 `session-busy` with `Retry-After`", figure="ms until the last was refused", at_most=4000)
async def waiting_for_one_session(stage: Stage) -> float:
    """60 questions of one session while its turn runs; `SESSION_WAIT` is 1 s."""
    service = await stage.service(**(_SMALL | {"MAX_QUESTIONS": "2000"}))
    stage.upstream.behave = frozen
    session = stage.name()
    asked = [asyncio.create_task(service.ask("/chat?userInput=hi", session=session)) for _ in range(61)]
    await until(lambda: sum(each.done() for each in asked) >= 60)
    refused = [each.result() for each in asked if each.done()]
    for each in asked:
        each.cancel()
    wrong = [each for each in refused if each.outcome != "409 session-busy" or "retry-after" not in each.headers]
    held(not wrong, f"{len(wrong)} were answered otherwise, such as {wrong[0].outcome if wrong else ''}")
    return max(each.seconds for each in refused) * 1000


@fault(users="their question in the session is answered", figure="turns of the stranger's before it", at_most=8)
async def a_stranger_floods_a_session(stage: Stage) -> float:
    """An address puts 60 questions into the session of another, who then asks one; each takes 0.2 s."""
    service = await stage.service(**(_SMALL | {"MAX_QUESTIONS": "2000", "SESSION_WAIT": "30"}))
    session = stage.name()
    await service.ask("/chat?userInput=hi", session=session, source=_OTHER)
    stage.upstream.behave = speaking(lambda _: "Hello.", first=0.2)
    crowd = [asyncio.create_task(service.ask("/chat?userInput=hi", session=session)) for _ in range(60)]
    await until(lambda: len(stage.upstream.calls) > 2)
    before = len(stage.upstream.calls)
    own = await service.ask("/chat?userInput=mine", session=session, source=_OTHER)
    held(own.status == 200, f"answered {own.outcome}")
    asked = [text_of(each) for each in stage.upstream.calls]
    for each in crowd:
        each.cancel()
    await asyncio.gather(*crowd, return_exceptions=True)
    return asked.index("mine") - before


@fault(users="their alarm is set", figure="ms until it was", at_most=3000)
async def one_client_sets_alarms_without_end(stage: Stage) -> float:
    """One address sets 150 alarms where 100 fit, with a key each; another sets one."""
    service = await stage.service(**(_SMALL | {"OPENAI_BASE_URL": "", "CHAT_PROVIDER": "offline"}))
    statuses = [await _alarm(service, stage.name(), "127.0.0.1") for _ in range(150)]
    held(set(statuses) <= {200, 409, 429, 503}, f"answered {set(statuses)}")
    began = time.monotonic()
    status = await _alarm(service, stage.name(), _OTHER)
    held(status == 200, f"the other was answered {status}")
    return (time.monotonic() - began) * 1000


async def _alarm(service: Service, key: str, source: str) -> int:
    headers = {"Idempotency-Key": key}
    return (await service.ask("/tool/alarm", json_body={}, headers=headers, source=source)).status


@fault(users="each gets its own answer", figure="of 1,000 answers", at_least=1000, fast=True)
async def a_thousand_questions_at_once(stage: Stage) -> float:
    """1,000 questions of two addresses at once, each with a number that its answer has to quote."""
    service = await stage.service()
    stage.upstream.behave = speaking(lambda body: body["messages"][-1]["content"])

    async def right(number: int) -> bool:
        source = f"127.0.0.{1 + number % 2}"
        return (await service.ask(f"/time/chat?query=number-{number}", source=source)).text == f"number-{number}"

    return sum(await asyncio.gather(*(right(number) for number in range(1000))))


@fault(users="429 with `Retry-After` and `RateLimit`", figure="of 10 questions that were let in, of 5 a minute",
       at_least=5, at_most=5)  # fmt: skip
async def a_rate_limit_is_kept(stage: Stage) -> float:
    """10 questions at once where 5 a minute are allowed."""
    service = await stage.service(REQUESTS_PER_MINUTE="5")
    replies = await _asked(service, 10)
    refused = [each for each in replies if each.status != 200]
    held({each.outcome for each in refused} == {_LIMITED}, f"answered { {each.outcome for each in refused} }")
    held(all(each.headers.keys() >= {"retry-after", "ratelimit"} for each in refused), "a header is missing")
    return len(replies) - len(refused)


@fault(users="429", figure="of 10 questions that were let in, of 5 a minute", at_least=5, at_most=5)
async def a_rate_limit_of_two_replicas(stage: Stage) -> float:
    """10 questions at once over two replicas that share a Redis, where 5 a minute are allowed in total."""
    settings = {"REDIS_URL": (await stage.shared_redis()).url, "REQUESTS_PER_MINUTE": "5"}
    replicas = [await stage.replica(number, **settings) for number in range(2)]
    replies = await asyncio.gather(*(replicas[number % 2].ask("/time/chat?query=hi") for number in range(10)))
    outcomes = {each.outcome for each in replies}
    held(outcomes == {"200", _LIMITED}, f"answered {outcomes}")
    return sum(each.status == 200 for each in replies)


@fault(users="429", figure="of 6 questions that were answered, of 5 tokens a day", at_least=3, at_most=3)
async def a_token_limit_is_kept(stage: Stage) -> float:
    """6 questions of 2 tokens each, one after the other, where 5 tokens a day are allowed."""
    service = await stage.service(TOKENS_PER_DAY="5")
    replies = [await service.ask("/time/chat?query=hi", headers={"Accept": "text/event-stream"}) for _ in range(6)]
    held([each.outcome for each in replies[3:]] == [_LIMITED] * 3, f"answered {[each.outcome for each in replies]}")
    return len(stage.upstream.calls)


@fault(users="404, as if it did not exist", figure="ways by which it could be read", at_most=0, fast=True)
async def what_another_key_has_stored(stage: Stage) -> float:
    """A client with a key of its own asks for the session of another one, shows it, continues and deletes it."""
    keys = {name: f"toolchat_{name}" for name in ("alice", "bob")}
    digests = ",".join(f"{name}={hashlib.sha256(key.encode()).hexdigest()}" for name, key in keys.items())
    service = await stage.service(API_KEYS=digests)
    alice, bob = ({"X-API-Key": key} for key in keys.values())
    session = stage.name()
    held((await service.ask("/chat?userInput=secret", session=session, headers=alice)).status == 200, "not answered")
    shown = await service.ask(f"/chat/{session}", headers=bob)
    await service.ask("/chat?userInput=hi", session=session, headers=bob)
    read = "secret" in json.dumps(stage.upstream.calls[-1])
    await service.ask(f"/chat/{session}", method="DELETE", headers=bob)
    kept = await service.ask(f"/chat/{session}", headers=alice)
    held(kept.status == 200 and len(kept.json()["messages"]) == 2, f"its owner is answered {kept.outcome}")
    return (shown.outcome != "404 not-found") + read
