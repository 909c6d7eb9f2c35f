"""The shares of clients: how many unfinished questions each may have, and whose question runs next."""

import time
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from math import inf

from toolchat.errors import Overloaded
from toolchat.service.api.background.records import Unfinished

_MAX_UNFINISHED, _MAX_OF_A_CLIENT, _KEPT = 1000, 100, 100
"""Unfinished questions of all processes, those of one client, and how many of all only clients without any may have."""
_SLOTS, _SLOTS_OF_A_CLIENT, _SLOTS_KEPT = 64, 32, 8
"""The same for the questions that run at once in a process."""
_FIRST_PAUSE, _MAX_PAUSE = 0.2, 15.0


@dataclass(slots=True)
class _Entry:
    question: Unfinished
    ready_at: float
    """When it may be tried (again), by the clock of this process; infinite while another one runs it."""


class Backlog:
    """The unfinished questions of all processes, as far as this one knows them.

    Clients take turns: the next question is one of the client that has fewest running here.
    """

    def __init__(self) -> None:
        self._clients: dict[str, dict[str, _Entry]] = {}
        """The client whose turn is next comes first."""
        self.running: dict[str, str] = {}
        """The clients of the questions that run here, by identifier."""

    def admit(self, identifier: str, question: Unfinished) -> None:
        """Count a question that is about to be stored; raises ``Overloaded`` if its client has its share."""
        of_client = len(self._clients.get(question.client, ()))
        if of_client >= _MAX_OF_A_CLIENT or len(self.known()) >= _MAX_UNFINISHED - (_KEPT if of_client else 0):
            whose = " of this client" if of_client else ""
            raise Overloaded(f"too many background questions{whose} are unfinished", retry_after=5)
        self.put(identifier, question, inf)

    def put(self, identifier: str, question: Unfinished, pause: float | None = None) -> float:
        """Add a question, or replace it; returns the seconds until it may be tried."""
        if pause is None:
            pause = min(_FIRST_PAUSE * 2 ** min(question.tries - 1, 10), _MAX_PAUSE) if question.tries else 0
        entry = _Entry(question, time.monotonic() + pause)
        self._clients.setdefault(question.client, {})[identifier] = entry
        return pause

    def remove(self, identifier: str, client: str) -> None:
        """Remove a question that has ended."""
        own = self._clients.get(client, {})
        own.pop(identifier, None)
        if not own:
            self._clients.pop(client, None)

    def known(self) -> dict[str, str]:
        """The clients of all questions, by identifier."""
        return {identifier: client for client, own in self._clients.items() for identifier in own}

    def sessions(self, client: str) -> dict[str, str]:
        """The questions of a client by their sessions."""
        return {each.question.session: identifier for identifier, each in self._clients.get(client, {}).items()}

    def refresh(self, before: Mapping[str, str], listed: Mapping[str, Unfinished], free: Collection[str]) -> None:
        """Take over what is stored: what was known before it was read, what was listed, and what no process runs."""
        for identifier in before.keys() - listed.keys() - self.running.keys():
            self.remove(identifier, before[identifier])
        for identifier, question in listed.items():
            known = self._clients.get(question.client, {}).get(identifier)
            if identifier in self.running or (known is None and identifier in before):  # it has ended meanwhile
                continue
            if identifier not in free:
                self.put(identifier, question, inf)
            elif known is None or known.ready_at == inf or known.question != question:
                self.put(identifier, question)

    def next(self) -> tuple[str, Unfinished] | None:
        """The question whose turn it is, if one is ready and a slot is free for its client."""
        running, now = Counter(self.running.values()), time.monotonic()
        free = _SLOTS - len(self.running)
        for client in sorted(self._clients, key=running.__getitem__):
            if running[client] >= _SLOTS_OF_A_CLIENT or free <= (_SLOTS_KEPT if running[client] else 0):
                return None  # those that follow have more
            for identifier, entry in self._clients[client].items():
                if entry.ready_at <= now and identifier not in self.running:
                    self._clients[client] = self._clients.pop(client)  # behind all others
                    return identifier, entry.question
        return None
