"""Several processes that share sessions: two at once, one that dies, one that comes too late."""

import asyncio
import signal
import time

from lab.fault import fault, held
from lab.history import Session, remembering
from lab.service import Service
from lab.sessions import answers, asks, sharing
from lab.stage import Stage
from lab.upstream import Call, frozen, speaking
from lab.waiting import until

_BUSY = "409 session-busy"


@fault(users="one after the other, or 409", figure="acknowledged turns lost or out of order", at_most=0, fast=True)
async def one_session_by_many_at_once(stage: Stage) -> float:
    """50 questions of one session at once over two replicas; its history is checked as a register."""
    replicas = [await sharing(stage, number) for number in range(2)]
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
        held(reply.outcome in ("200", _BUSY), f"answered {reply.outcome}")
        session.add(f"q{number}", sent, reply.text if reply.status == 200 else None)

    await asyncio.gather(*(ask(number) for number in range(50)))
    kept = (await replicas[0].ask(f"/chat/{session.identifier}")).json()["messages"]
    stage.note = f"{sum(turn.acknowledged for turn in session.turns)} acknowledged"
    held(together == 1, f"{together} turns ran at once")
    faults = session.faults(kept)
    held(not faults, "; ".join(faults[:3]))
    return len(faults)


@fault(users="nobody ever sees another's words", figure="foreign words in 600 prompts", at_most=0)
async def sessions_do_not_mix(stage: Stage) -> float:
    """200 sessions of three turns each over two replicas, each with a word of its own."""
    replicas = [await sharing(stage, number) for number in range(2)]
    sessions = {f"word{number}x": stage.name() for number in range(200)}
    for turn in range(3):
        await asyncio.gather(*(asks(replicas[turn % 2], session, word) for word, session in sessions.items()))
    texts = [{one["content"] for one in body["messages"] if one["role"] == "user"} for body in stage.upstream.calls]
    held(len(texts) == 600, f"the model was asked {len(texts)} times")
    held(sum(body["messages"][-1]["content"] in sessions for body in stage.upstream.calls) == 600, "a word was lost")
    return sum(len(each) != 1 for each in texts)


async def _victim(stage: Stage) -> Service:
    """A replica for this row alone, which shares its sessions with the family's."""
    return await stage.own(REDIS_URL=(await stage.shared_redis()).url)


@fault(users="the session goes on elsewhere", figure="s until another replica answered", at_most=20)
async def a_replica_killed_in_mid_turn(stage: Stage) -> float:
    """SIGKILL to the replica that runs a turn; the session is asked at another one."""
    victim, other, session = await _victim(stage), await sharing(stage), stage.name()
    held((await asks(victim, session)).status == 200, "it did not work before")
    stage.upstream.behave = frozen
    asked = asyncio.create_task(asks(victim, session))
    await until(lambda: stage.upstream.open == 1)
    victim.signal(signal.SIGKILL)
    await asked
    stage.upstream.reset()
    began = time.monotonic()
    await until(lambda: answers(other, session))
    return time.monotonic() - began


@fault(users="409 `session-busy` for the late one", figure="turns stored, of one that counts", at_least=1, at_most=1)
async def a_replica_stopped_beyond_its_lock(stage: Stage) -> float:
    """A replica is stopped in mid-turn for so long that another takes the session; then it goes on (fencing)."""
    victim, other, session = await _victim(stage), await sharing(stage), stage.name()
    stage.upstream.behave = speaking(lambda _: "Late.", first=1)
    asked = asyncio.create_task(asks(victim, session, "late"))
    await until(lambda: stage.upstream.open == 1)
    victim.signal(signal.SIGSTOP)
    stage.upstream.behave = speaking(lambda _: "Early.")
    early = await asks(other, session, "early")
    victim.signal(signal.SIGCONT)
    held((early.outcome, early.text) == ("200", "Early."), f"the early one was answered {early.outcome}")
    held((await asked).outcome == _BUSY, f"the late one was answered {asked.result().outcome}")
    texts = await _texts(other, session)
    held(texts == ["early", "Early."], f"stored is {texts}")
    return len(texts) / 2


@fault(users="one after the other", figure="turns stored, of two", at_least=2, at_most=2)
async def a_turn_longer_than_its_lock(stage: Stage) -> float:
    """A turn takes 7 s, which is longer than a lock lasts; another replica is asked in its session after 5 s."""
    first, second = [await sharing(stage, number) for number in range(2)]
    session = stage.name()
    stage.upstream.behave = speaking(lambda _: "Long.", first=7)
    asked = asyncio.create_task(asks(first, session, "long"))
    await asyncio.sleep(5)
    stage.upstream.behave = speaking(lambda _: "Next.")
    following = await asks(second, session, "next")
    held((await asked).outcome == following.outcome == "200", f"answered {asked.result().outcome}, {following.outcome}")
    texts = await _texts(first, session)
    held(texts == ["long", "Long.", "next", "Next."], f"stored is {texts}")
    return len(texts) / 2


async def _texts(service: Service, session: str) -> list[str]:
    """What is stored of a session."""
    return [one["text"] for one in (await service.ask(f"/chat/{session}")).json()["messages"]]
