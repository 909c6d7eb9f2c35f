"""Several processes that share sessions: two at once, one that dies, one that comes too late."""

import asyncio
import signal
import time

from lab.fault import fault, held
from lab.history import Session, remembering
from lab.service import Service
from lab.sessions import answers, asks, sharing
from lab.stage import Stage
from lab.upstream import frozen, speaking
from lab.waiting import until


@fault(users="one after the other, or 409", figure="acknowledged turns lost or out of order", at_most=0, fast=True)
async def one_session_by_many_at_once(stage: Stage) -> float:
    """50 questions of one session at once over two replicas; its history is checked as a register."""
    replicas = [await sharing(stage, number) for number in range(2)]
    stage.upstream.behave = speaking(remembering, first=0.01)
    session = Session(stage.name())

    async def ask(number: int) -> None:
        sent = time.monotonic()
        reply = await asks(replicas[number % 2], session.identifier, f"q{number}")
        held(reply.status in (200, 409), f"answered {reply.status} {reply.code}")
        session.add(f"q{number}", sent, reply.text if reply.status == 200 else None)

    await asyncio.gather(*(ask(number) for number in range(50)))
    kept = (await replicas[0].ask(f"/chat/{session.identifier}")).json()["messages"]
    stage.note = f"{sum(turn.acknowledged for turn in session.turns)} acknowledged"
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


@fault(users="its late answer is not kept", figure="turns kept that were not acknowledged", at_most=0)
async def a_replica_stopped_beyond_its_lock(stage: Stage) -> float:
    """A replica is stopped in mid-turn for so long that another takes the session; then it goes on (fencing)."""
    victim, other, session = await _victim(stage), await sharing(stage), stage.name()
    stage.upstream.behave = speaking(lambda _: "Late.", first=1)
    asked = asyncio.create_task(asks(victim, session, "late"))
    await until(lambda: stage.upstream.open == 1)
    victim.signal(signal.SIGSTOP)
    stage.upstream.behave = speaking(lambda _: "Early.")
    await until(lambda: answers(other, session))
    victim.signal(signal.SIGCONT)
    reply = await asked
    messages = (await other.ask(f"/chat/{session}")).json()["messages"]
    late = sum(one["text"] == "late" for one in messages)
    held(late == 0 or reply.status == 200, "an answer that failed was kept")
    stage.note = f"the late one was answered {reply.status} {reply.code}"
    return late if reply.status != 200 else 0


@fault(users="one alarm", figure="alarms that were set", at_least=1, at_most=1)
async def one_idempotency_key_at_two_replicas(stage: Stage) -> float:
    """20 requests with one `Idempotency-Key` at once over two replicas."""
    redis = await stage.shared_redis()
    settings = {"REDIS_URL": redis.url, "OPENAI_BASE_URL": "", "OPENAI_API_KEY": "", "CHAT_PROVIDER": "offline"}
    replicas = [await stage.replica(number, **settings) for number in range(2)]
    headers = {"Idempotency-Key": stage.name(), "X-Tenant-ID": stage.name()}
    replies = await asyncio.gather(
        *(replicas[number % 2].ask("/tool/alarm", json_body={}, headers=headers) for number in range(20))
    )
    held({each.status for each in replies} <= {200, 409}, f"answered { ({each.status for each in replies}) }")
    alarms = (await replicas[0].ask("/tool/alarms", headers=headers)).json()
    return len(alarms["alarms"] if isinstance(alarms, dict) else alarms)
