"""Clients of a service under chaos: their turns, approvals and idempotency keys, and what they were answered.

Several clients share each session. A client repeats what failed, as a careful one does: with the same idempotency key.
"""

import asyncio
import itertools
import json
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from tests.faults.history import Session, remembering
from tests.faults.service import Service
from tests.faults.upstream import Call, playing, speaking, text_of
from tests.faults.wire import Reply
from tests.players.openai_player import message, whole

__all__ = ["Ledger", "Workload", "answer", "write_tool"]

_SESSIONS, _CLIENTS, _TURNS = 4, 3, 12
_ATTEMPTS = 25
_NOT_WAITING = ("not-found", "already-decided")
_JSON = {"Accept": "application/json"}
_STREAM = {"Accept": "text/event-stream"}
_TOOL = '''
import asyncio
import os

from toolchat import ToolModule
from toolchat.tool_calling.function_callback import tool


@tool(requires_approval=True)
async def fire(word: str) -> str:
    """Do what cannot be undone."""
    runs = os.open({runs!r}, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(runs, f"{{word}}\\n".encode())
    os.close(runs)
    await asyncio.sleep(0.02)
    return word


module = ToolModule(functions=(fire,), default_query="Fire")
'''


def write_tool(folder: Path, runs: Path) -> None:
    """Write a tool folder whose tool writes a line into a file each time it runs."""
    (folder / "once").mkdir(parents=True)
    (folder / "once" / "__init__.py").write_text(_TOOL.format(runs=str(runs)))


async def answer(call: Call) -> None:
    """Play the model: it calls a tool if the question says so, and tells what it has read of the session."""
    text = text_of(call.body)
    if not text.startswith("fire-") or call.body["messages"][-1]["role"] == "tool":
        return await speaking(remembering, pieces=3, pause=0.01)(call)
    function = {"name": "fire", "arguments": json.dumps({"word": text})}
    calls = [{"id": "c0", "type": "function", "function": function}]
    return await playing(whole(message("tool_calls", content=None, tool_calls=calls)))(call)


@dataclass
class Ledger:
    """What the clients asked for and were told; and in the end, what is wrong with it."""

    sessions: list[Session] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)
    fired: dict[str, bool] = field(default_factory=dict)
    """The calls under a key or after an approval, and whether they were acknowledged."""
    approvals: int = 0
    """Acknowledged pauses."""
    faults: list[str] = field(default_factory=list)
    """Each begins with what kind it is: lost, doubled, or another."""

    @property
    def acknowledged(self) -> int:
        """The turns that were answered."""
        return sum(turn.acknowledged for session in self.sessions for turn in session.turns)

    def count(self, kind: str) -> int:
        """The number of faults of a kind."""
        return sum(each.startswith(kind) for each in self.faults)

    def __str__(self) -> str:
        return (
            f"{self.acknowledged} acknowledged turns in {len(self.sessions)} sessions of {_CLIENTS} clients each, "
            f"{self.approvals} approvals, {sum(self.fired.values())} runs of a tool"
        )


class Workload:
    """Clients that ask until a time is over.

    Args:
        choose: chooses a replica that is up.
        name: distinguishes the sessions and keys of this workload.
        end: when to stop, by ``time.monotonic``.
    """

    def __init__(self, choose: Callable[[], Service], name: str, end: float) -> None:
        self.ledger = Ledger()
        self._choose = choose
        self._name = name
        self._end = end
        self._numbers = itertools.count()

    async def run(self, draw: Random) -> None:
        """Let all clients ask until the end."""
        clients = (*[self._converse] * _SESSIONS, *[self._repeat_keys] * 2)
        await asyncio.gather(*(client(Random(draw.random())) for client in clients))

    async def settle(self, runs: Sequence[str]) -> None:
        """Compare what is stored, and the runs of the tool, with what was acknowledged; faults go into the ledger."""
        for session in self.ledger.sessions:
            reply = await self._final(f"/chat/{session.identifier}")
            self.ledger.faults += session.faults(reply.json()["messages"] if reply.status == 200 else [])
        ran = Counter(runs)
        self.ledger.faults += [f"doubled: {word} ran {count} times" for word, count in ran.items() if count > 1]
        done = [word for word, acknowledged in self.ledger.fired.items() if acknowledged]
        self.ledger.faults += [f"lost: {word} never ran" for word in done if word not in ran]

    async def _final(self, path: str) -> Reply:
        """Read what is stored; a read that fails is repeated before its data counts as lost.

        Raises:
            RuntimeError: it fails for long.
        """
        for _ in range(100):
            with suppress(OSError, TimeoutError):
                reply = await self._choose().ask(path)
                if reply.whole and reply.status in (200, 404):
                    return reply
            await asyncio.sleep(0.3)
        raise RuntimeError(f"{path} could not be read after the chaos")

    @property
    def _goes_on(self) -> bool:
        return time.monotonic() < self._end

    async def _converse(self, draw: Random) -> None:
        while self._goes_on:
            session = Session(f"chaos-{next(self._numbers)}-{self._name}")
            self.ledger.sessions.append(session)
            await asyncio.gather(*(self._talk(session, Random(draw.random())) for _ in range(_CLIENTS)))

    async def _talk(self, session: Session, draw: Random) -> None:
        for _ in range(_TURNS):
            if not self._goes_on:
                return
            number = next(self._numbers)
            if draw.random() < 0.15:
                await self._approve(session, f"fire-{number}", draw)
            else:
                await self._ask(session, f"turn-{number}", streams=draw.random() < 0.5)
            await asyncio.sleep(draw.random() * 0.1)

    async def _ask(self, session: Session, text: str, *, streams: bool) -> None:
        sent = time.monotonic()
        headers = _STREAM if streams else {}
        reply, outcome = await self._request(f"/chat?userInput={text}", session=session.identifier, headers=headers)
        said = None
        if reply and outcome == "ok":
            said = str(reply.events[-1][1]["answer"]) if streams else reply.text
        session.add(text, sent, said)

    async def _approve(self, session: Session, text: str, draw: Random) -> None:
        """Ask for what needs an approval, and give it twice at once, or in two attempts."""
        sent = time.monotonic()
        reply, outcome = await self._request(f"/chat?userInput={text}", session=session.identifier, headers=_JSON)
        said = None
        if reply and outcome == "ok" and (pending := reply.json().get("approval")):
            self.ledger.approvals += 1
            await asyncio.sleep(draw.random())
            said = await self._decide(pending, times=draw.choice((1, 2)))
            self.ledger.fired[text] = said is not None
        session.add(text, sent, said, paused=True)

    async def _decide(self, pending: dict[str, Any], times: int) -> str | None:
        path, uncertain = f"/approvals/{pending['id']}", times > 1
        options: dict[str, Any] = {"headers": _JSON, "expected": _NOT_WAITING}
        options["json_body"] = {"decisions": {each["id"]: {"approved": True} for each in pending["calls"]}}
        for _ in range(_ATTEMPTS):
            results = await asyncio.gather(*(self._request(path, **options) for _ in range(times)))
            if done := [reply for reply, outcome in results if reply and outcome == "ok"]:
                return str(done[0].json()["answer"])
            if not {outcome for _, outcome in results}.isdisjoint(_NOT_WAITING):
                if not uncertain:
                    self.ledger.faults.append(f"lost: the approval {pending['id']}")
                return None
            uncertain = True
            await asyncio.sleep(0.3)
        return None

    async def _insist(self, path: str, key: str, **options: Any) -> Reply | None:
        """Repeat a request with its key until it is answered, or it is known that nobody knows its effect."""
        headers = _JSON | {"Idempotency-Key": key}
        for _ in range(_ATTEMPTS):
            reply, outcome = await self._request(path, headers=headers, expected=("idempotency-conflict",), **options)
            if outcome == "ok":
                return reply
            if reply and outcome == "idempotency-conflict" and not reply.json()["retryable"]:
                return None
            await asyncio.sleep(0.3)
        return None

    async def _repeat_keys(self, draw: Random) -> None:
        """Run a tool under a key, and repeat some requests that were answered."""
        while self._goes_on:
            word = f"fire-key-{next(self._numbers)}-{self._name}"
            first = await self._insist("/tools/fire", word, json_body={"word": word})
            self.ledger.fired[word] = first is not None
            if first and draw.random() < 0.3:
                await self._insist("/tools/fire", word, json_body={"word": word})
            await asyncio.sleep(draw.random() * 0.2)

    async def _request(self, path: str, *, expected: Sequence[str] = (), **options: Any) -> tuple[Reply | None, str]:
        """The answer of some replica, and its outcome: ``ok``, the code of an error, or how it broke off.

        Args:
            path: what is asked for.
            expected: codes of errors that are no failure of the service here.
            options: as :meth:`Service.ask` has them.
        """
        reply, outcome = None, "not connected"
        with suppress(OSError, TimeoutError):
            reply = await self._choose().ask(path, **options)
            outcome = _outcome(reply)
        self.ledger.outcomes["ok" if outcome in expected else outcome] += 1
        return reply, outcome


def _outcome(reply: Reply) -> str:
    if not reply.whole:
        return "cut off"
    if reply.status != 200:
        return reply.code or f"status {reply.status}"
    if not reply.headers.get("content-type", "").startswith("text/event-stream"):
        return "ok"
    if reply.last == "done":
        return "ok"
    return str(reply.events[-1][1].get("code", "?")) if reply.last == "error" else "no end"
