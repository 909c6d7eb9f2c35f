"""Whether what sessions keep can have come about by turns one after the other.

A session is one register: a turn reads all turns before it and appends itself. The provider answers each
question with the question and a digest of those that it was shown before it, so that every acknowledged answer says
what its turn has read. Afterwards the register is read once more, and must show one order that explains all of it.
"""

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Session", "Turn", "remembering"]


@dataclass(frozen=True)
class Turn:
    """One question that a user has sent."""

    text: str
    sent: float
    answered: float
    """When its answer was there; infinite when there was none."""
    answer: str = ""
    paused: bool = False
    """It waited for an approval, and has read the turns before its pause; others may have been stored since."""

    @property
    def acknowledged(self) -> bool:
        """Whether it was answered as it should be."""
        return self.answered < float("inf")


def _digest(texts: Sequence[str]) -> str:
    return f"{len(texts)}-{hashlib.sha256('|'.join(texts).encode()).hexdigest()[:16]}"


def remembering(body: Any) -> str:
    """What the provider says: the question, and which ones it was shown before it."""
    texts = [str(one["content"]) for one in body["messages"] if one["role"] == "user"]
    return f"{texts[-1]} after {_digest(texts[:-1])}"


@dataclass
class Session:
    """One conversation, with all that was asked in it."""

    identifier: str
    turns: list[Turn] = field(default_factory=list)

    def add(self, text: str, sent: float, answer: str | None, *, paused: bool = False) -> None:
        """Note a question, with its answer when there was one."""
        answered = float("inf") if answer is None else time.monotonic()
        self.turns.append(Turn(text, sent, answered, answer or "", paused))

    def faults(self, kept: Sequence[Mapping[str, Any]]) -> list[str]:
        """What is wrong with the messages that the service kept; empty when one order explains all of it."""
        order = [str(one["text"]) for one in kept if one["role"] == "user"]
        answers = [str(one["text"]) for one in kept if one["role"] == "assistant"]
        asked = {turn.text for turn in self.turns}
        found = [f"lost: {turn.text}" for turn in self.turns if turn.acknowledged and turn.text not in order]
        found += [f"invented: {text}" for text in order if text not in asked]
        found += [f"kept twice: {text}" for text in set(order) if order.count(text) > 1]
        paused = {turn.text for turn in self.turns if turn.paused}
        for place, (text, answer) in enumerate(zip(order, answers, strict=False)):
            read = range(place + 1) if text in paused else [place]
            if answer not in [f"{text} after {_digest(order[:count])}" for count in read]:
                found.append(f"read something else: {answer}")
        return found + self._out_of_order(order)

    def _out_of_order(self, order: Sequence[str]) -> list[str]:
        """Turns that stand before one that was over when they were sent."""
        place = {text: at for at, text in enumerate(order)}
        kept = [turn for turn in self.turns if turn.text in place]
        return [
            f"out of order: {later.text} before {earlier.text}"
            for earlier in kept
            for later in kept
            if earlier.answered < later.sent and place[later.text] < place[earlier.text]
        ]
