"""Several processes that share sessions: two at once, one that dies, one that comes too late."""

import asyncio
import signal
import sqlite3
import time
from contextlib import closing, suppress

import pytest

from tests.faults.history import Session, remembering
from tests.faults.service import Service
from tests.faults.sessions import ROOMY, answers, asks, sharing
from tests.faults.stage import Stage
from tests.faults.upstream import Call, frozen, speaking
from tests.waiting import until

_BUSY = "409 session-busy"


async def test_one_session_by_many_at_once(stage: Stage) -> None:
    """50 questions of one session at once over two replicas; its history is checked as a register."""
    assert await _by_many_at_once(stage, [await sharing(stage, number) for number in range(2)]) == 0


@pytest.mark.nightly
async def test_one_session_in_a_file_by_many_at_once(stage: Stage) -> None:
    """50 questions of one session at once over two processes that share a file."""
    assert await _by_many_at_once(stage, [await stage.own(**_in_a_file(stage), **ROOMY) for _ in range(2)]) == 0


def _in_a_file(stage: Stage) -> dict[str, str]:
    """A setting with which processes share a file."""
    return {"STATE_URL": f"sqlite:///{stage.folder / 'state.db'}"}


async def _by_many_at_once(stage: Stage, replicas: list[Service]) -> float:
    session = Session(stage.name())
    together = 0

    async def answer(call: Call) -> None:
        nonlocal together
        together = max(together, stage.upstream.open)
        await speaking(remembering, first=0.01)(call)

    stage.upstream.behave = answer

    async def ask(number: int) -> None:
        sent = time.monotonic()
        reply = await asks(replicas[number % 2], session.identifier, f"q{number}")
        assert reply.outcome in ("200", _BUSY), f"answered {reply.outcome}"
        session.add(f"q{number}", sent, reply.text if reply.status == 200 else None)

    await asyncio.gather(*(ask(number) for number in range(50)))
    kept = (await replicas[0].ask(f"/chat/{session.identifier}")).json()["messages"]
    print(f"{sum(turn.acknowledged for turn in session.turns)} acknowledged")
    assert together == 1, f"{together} turns ran at once"
    faults = session.faults(kept)
    assert not faults, "; ".join(faults[:3])
    return len(faults)


@pytest.mark.nightly
async def test_sessions_do_not_mix(stage: Stage) -> None:
    """200 sessions of three turns each over two replicas, each with a word of its own."""
    replicas = [await sharing(stage, number) for number in range(2)]
    sessions = {f"word{number}x": stage.name() for number in range(200)}
    for turn in range(3):
        await asyncio.gather(*(asks(replicas[turn % 2], session, word) for word, session in sessions.items()))
    texts = [{one["content"] for one in body["messages"] if one["role"] == "user"} for body in stage.upstream.calls]
    assert len(texts) == 600, f"the model was asked {len(texts)} times"
    assert sum(body["messages"][-1]["content"] in sessions for body in stage.upstream.calls) == 600, "a word was lost"
    assert sum(len(each) != 1 for each in texts) == 0


async def _victim(stage: Stage) -> Service:
    """A replica for this test alone, which shares its sessions with the others."""
    return await stage.own(REDIS_URL=(await stage.shared_redis()).url)


@pytest.mark.nightly
async def test_a_replica_killed_in_mid_turn(stage: Stage) -> None:
    """SIGKILL to the replica that runs a turn; the session is asked at another one."""
    victim, other, session = await _victim(stage), await sharing(stage), stage.name()
    assert (await asks(victim, session)).status == 200, "it did not work before"
    stage.upstream.behave = frozen
    asked = asyncio.create_task(asks(victim, session))
    await until(lambda: stage.upstream.open == 1)
    victim.signal(signal.SIGKILL)
    await asked
    stage.upstream.reset()
    began = time.monotonic()
    await until(lambda: answers(other, session))
    assert time.monotonic() - began <= 20


@pytest.mark.nightly
async def test_a_replica_stopped_beyond_its_lock(stage: Stage) -> None:
    """A replica is stopped in mid-turn for so long that another takes the session; then it goes on (fencing)."""
    assert await _stopped_beyond_its_lock(stage, await _victim(stage), await sharing(stage)) == 1


@pytest.mark.nightly
async def test_a_process_stopped_beyond_its_lock_in_a_file(stage: Stage) -> None:
    """The same with two processes that share a file."""
    victim, other = [await stage.own(**_in_a_file(stage)) for _ in range(2)]
    assert await _stopped_beyond_its_lock(stage, victim, other) == 1


async def _stopped_beyond_its_lock(stage: Stage, victim: Service, other: Service) -> float:
    session = stage.name()
    stage.upstream.behave = speaking(lambda _: "Late.", first=1)
    asked = asyncio.create_task(asks(victim, session, "late"))
    await until(lambda: stage.upstream.open == 1)
    victim.signal(signal.SIGSTOP)
    stage.upstream.behave = speaking(lambda _: "Early.")
    early = await asks(other, session, "early")
    victim.signal(signal.SIGCONT)
    assert (early.outcome, early.text) == ("200", "Early."), f"the early one was answered {early.outcome}"
    assert (await asked).outcome == _BUSY, f"the late one was answered {asked.result().outcome}"
    texts = await _texts(other, session)
    assert texts == ["early", "Early."], f"stored is {texts}"
    return len(texts) / 2


@pytest.mark.nightly
async def test_a_process_killed_with_its_file(stage: Stage) -> None:
    """SIGKILL to a process that stores its state in a file, with 20 clients that ask; it is started again."""
    service = await stage.own(**_in_a_file(stage))
    acknowledged: list[str] = []

    async def press() -> None:
        with suppress(OSError):
            while (await asks(service, session := stage.name())).status == 200:
                acknowledged.append(session)

    clients = [asyncio.create_task(press()) for _ in range(20)]
    await until(lambda: len(acknowledged) >= 200)
    service.signal(signal.SIGKILL)
    await asyncio.gather(*clients)
    await service.ended()
    await service.start()
    assert sum([await _texts(service, session) != ["hi", "Hello."] for session in acknowledged]) == 0


@pytest.mark.nightly
async def test_a_file_whose_writes_are_slow(stage: Stage) -> None:
    """Another process holds the write lock of the file for 0.4 s of each half, while sessions are asked in."""
    service = await stage.own(**_in_a_file(stage))
    await asks(service, stage.name())
    slowest = 0.0
    with closing(sqlite3.connect(stage.folder / "state.db", timeout=0.1, isolation_level=None)) as other:
        for _ in range(5):
            other.execute("BEGIN IMMEDIATE")
            waiting = [asyncio.create_task(asks(service, stage.name())) for _ in range(10)]
            until_then = time.monotonic() + 0.4
            while time.monotonic() < until_then:
                slowest = max(slowest, (await service.ask("/time/chat")).seconds)
            other.execute("COMMIT")
            outcomes = {reply.outcome for reply in await asyncio.gather(*waiting)}
            assert outcomes == {"200"}, f"answered {outcomes}"
    assert slowest * 1000 <= 250


@pytest.mark.nightly
async def test_a_turn_longer_than_its_lock(stage: Stage) -> None:
    """A turn takes 7 s, which is longer than a lock lasts; another replica is asked in its session after 5 s."""
    first, second = [await sharing(stage, number) for number in range(2)]
    session = stage.name()
    stage.upstream.behave = speaking(lambda _: "Long.", first=7)
    asked = asyncio.create_task(asks(first, session, "long"))
    await asyncio.sleep(5)
    stage.upstream.behave = speaking(lambda _: "Next.")
    following = await asks(second, session, "next")
    assert (await asked).outcome == following.outcome == "200", (
        f"answered {asked.result().outcome}, {following.outcome}"
    )
    texts = await _texts(first, session)
    assert texts == ["long", "Long.", "next", "Next."], f"stored is {texts}"
    assert len(texts) / 2 == 2


async def _texts(service: Service, session: str) -> list[str]:
    """What is stored of a session."""
    return [one["text"] for one in (await service.ask(f"/chat/{session}")).json()["messages"]]
