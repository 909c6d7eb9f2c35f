"""The shares of clients: how many unfinished questions each may have, and whose question runs next."""

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
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
    runs: bool = False
    """Whether it has a slot here."""


class Backlog:
    """The unfinished questions of all processes, as far as this one knows them; clients take turns."""

    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}
        self._turns: dict[str, int] = {}
        """When each client had its last turn, or came."""
        self._numbers = count()

    def admit(self, question: Unfinished) -> bool:
        """Count a question that is about to be stored; returns whether it has a slot.

        Raises ``Overloaded`` if its client has its share.
        """
        of_client = sum([each.question.client == question.client for each in self._entries.values()])
        if of_client >= _MAX_OF_A_CLIENT or len(self._entries) >= _MAX_UNFINISHED - (_KEPT if of_client else 0):
            whose = " of this client" if of_client else ""
            raise Overloaded(f"too many background questions{whose} are unfinished", retry_after=5)
        self.put(question, inf)
        return self._takes_slot(self._entries[question.identifier])

    def put(self, question: Unfinished, pause: float | None = None) -> float:
        """Add a question, or replace it, without a slot; returns the seconds until it may be tried."""
        if pause is None:
            pause = min(_FIRST_PAUSE * 2 ** min(question.tries - 1, 10), _MAX_PAUSE) if question.tries else 0
        self._entries[question.identifier] = _Entry(question, time.monotonic() + pause)
        self._turns.setdefault(question.client, next(self._numbers))
        return pause

    def remove(self, question: Unfinished) -> None:
        self._entries.pop(question.identifier, None)
        if all(each.question.client != question.client for each in self._entries.values()):
            self._turns.pop(question.client, None)

    def known(self) -> Mapping[str, Unfinished]:
        return {identifier: each.question for identifier, each in self._entries.items()}

    def runs(self, identifier: str) -> bool:
        return identifier in self._entries and self._entries[identifier].runs

    def refresh(self, before: Mapping[str, Unfinished], listed: Mapping[Unfinished, bool]) -> None:
        """Take over what is stored: what was known before it was read, and what was listed and whether it is free."""
        for ended in before.keys() - {each.identifier for each in listed}:
            if not self.runs(ended):
                self.remove(before[ended])
        for question, is_free in listed.items():
            known = self._entries.get(question.identifier)
            if known.runs if known else question.identifier in before:  # the latter has ended meanwhile
                continue
            if not is_free:
                self.put(question, inf)
            elif known is None or known.ready_at == inf or known.question != question:
                self.put(question)

    def next(self) -> Unfinished | None:
        """Give a slot to the question whose turn it is, if there is one: of the client that has fewest running here."""
        running, now = self._running(), time.monotonic()
        ready = [each for each in self._entries.values() if each.ready_at <= now and not each.runs]
        turns = [(running[each.question.client], self._turns[each.question.client]) for each in ready]
        entry = ready[turns.index(min(turns))] if ready else None
        return entry.question if entry and self._takes_slot(entry) else None

    def _takes_slot(self, entry: _Entry) -> bool:
        client, running = entry.question.client, self._running()
        free = _SLOTS - running.total()
        if running[client] < _SLOTS_OF_A_CLIENT and free > (_SLOTS_KEPT if running[client] else 0):
            entry.runs, self._turns[client] = True, next(self._numbers)
        return entry.runs

    def _running(self) -> Counter[str]:
        return Counter([each.question.client for each in self._entries.values() if each.runs])
