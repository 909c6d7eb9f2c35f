"""What a fault is, and the list of all."""

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.faults.stage import Stage

__all__ = ["FAULTS", "Bound", "Fault", "Measure", "NotHeld", "enter", "fault", "held"]

Measure = Callable[["Stage"], Awaitable[float]]


class NotHeld(Exception):
    """Something beside the figure does not hold; the message says what."""


def held(condition: object, otherwise: str) -> None:
    """State what must hold beside the figure.

    Raises:
        NotHeld: it does not.
    """
    if not condition:
        raise NotHeld(otherwise)


@dataclass(frozen=True)
class Bound:
    """What a figure has to keep."""

    at_least: float | None
    at_most: float | None

    def holds(self, figure: float) -> bool:
        """Whether the figure keeps it."""
        above = self.at_least is None or figure >= self.at_least
        return above and (self.at_most is None or figure <= self.at_most)

    def __str__(self) -> str:
        if self.at_least == self.at_most:
            return f"= {self.at_most:g}"
        if self.at_least is None:
            return f"≤ {self.at_most:g}"
        return f"≥ {self.at_least:g}" if self.at_most is None else f"{self.at_least:g} … {self.at_most:g}"


@dataclass(frozen=True)
class Fault:
    """One row of the table."""

    family: str
    name: str
    """Unique; what ``python -m tests.faults NAME`` runs."""
    done: str
    """What is done to the service."""
    users: str
    """What its users see of it."""
    figure: str
    """What is measured, with its unit."""
    bound: Bound
    measure: Measure
    fast: bool = False
    """Part of the half that every change has to pass."""
    peer: bool = False
    """Needs the environment of the benchmark's peers; not in the fast half."""
    loud: bool = False
    """May write ERROR lines into the service's log; any other row that does has not held."""
    limit: float = 60
    """Seconds it may take."""
    lasts: bool = False
    """Runs for the duration that the lab is given; the time limit grows with it."""
    known: str = ""
    """Why it does not hold; empty where it does."""


FAULTS: dict[str, Fault] = {}


def enter(new: Fault) -> None:
    """Add a fault to the list, for families that make their rows from a table.

    Raises:
        ValueError: its name is taken.
    """
    if new.name in FAULTS:
        raise ValueError(f"two faults are called {new.name}")
    FAULTS[new.name] = new


def fault(
    *,
    users: str,
    figure: str,
    at_most: float | None = None,
    at_least: float | None = None,
    fast: bool = False,
    peer: bool = False,
    loud: bool = False,
    limit: float = 60,
    lasts: bool = False,
    known: str = "",
) -> Callable[[Measure], Measure]:
    """Make a row of a coroutine: its name is the row's, its docstring says what is done, it returns the figure.

    Raises:
        ValueError: without any bound, or with a name that is taken.
    """
    if at_most is None and at_least is None:
        raise ValueError("a figure needs a bound")

    def entered(measure: Measure) -> Measure:
        name = getattr(measure, "__name__").replace("_", "-")  # noqa: B009 - a Callable need not have one
        done = " ".join((inspect.getdoc(measure) or "").split())
        family = measure.__module__.rsplit(".", 1)[-1]
        bound = Bound(at_least, at_most)
        enter(Fault(family, name, done, users, figure, bound, measure, fast, peer, loud, limit, lasts, known))
        return measure

    return entered
