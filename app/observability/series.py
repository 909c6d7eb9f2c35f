"""Series and their numbers, the text format of Prometheus (version 0.0.4), and OpenMetrics (1.0.0) with exemplars."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

__all__ = ["OTHER", "Family", "Names", "Numbers", "Readings", "exposition", "put"]

OTHER = "other"
"""What stands for every name that is not the service's own, and for every one that is too many."""
Numbers = list[float]
"""What is kept for one set of label values. A counter's is its value alone; a histogram's are how many fell below each
bound, how many above the last, and the sum of all."""
Readings = Mapping[Sequence[str], float]
"""Values by their labels' values."""


class Family:
    """One series with all its label values.

    Args:
        kind: as Prometheus calls it.
        name: without ``toolchat_``; ends in its unit, a counter's in ``_total``.
        meaning: one line.
        labels: their names.
        bounds: upper bounds of a histogram's buckets, ascending.
        most: sets of label values that are kept; what is beyond goes to one whose every value is ``other``.
    """

    def __init__(
        self,
        kind: Literal["counter", "gauge", "histogram"],
        name: str,
        meaning: str,
        labels: Sequence[str] = (),
        bounds: Sequence[float] = (),
        most: int = 2000,
    ) -> None:
        self.kind = kind
        self.name = f"toolchat_{name}"
        self.meaning = meaning
        self.labels = tuple(labels)
        self.bounds = tuple(bounds)
        self._most = most
        self._numbers: dict[tuple[str, ...], Numbers] = {}
        self._examples: dict[tuple[tuple[str, ...], int], tuple[str, float]] = {}
        """A trace and its value, by label values and bucket."""
        if kind == "counter" and not labels:
            self._new(())

    def at(self, *values: str) -> Numbers:
        """The numbers of a set of label values; whoever keeps them need not look them up again."""
        return self._numbers.get(values) or self._new(values)

    def add(self, *values: str, by: float = 1) -> None:
        """Add to a counter."""
        self.at(*values)[0] += by

    def observe(self, value: float, *values: str) -> None:
        """Add a value to a histogram."""
        put(self.at(*values), self.bounds, value)

    def exemplify(self, value: float, trace: str, *values: str) -> None:
        """Give the bucket that a histogram's value was added to a trace as its example: the latest."""
        if values in self._numbers:
            self._examples[values, bisect_left(self.bounds, value)] = trace, value

    def _new(self, values: tuple[str, ...]) -> Numbers:
        if len(self._numbers) >= self._most:
            values = (OTHER,) * len(self.labels)
        return self._numbers.setdefault(values, [0.0] * (len(self.bounds) + 2 if self.bounds else 1))

    def lines(self, readings: Readings | None = None, *, open_metrics: bool = False) -> Iterator[str]:
        """The family in the text format.

        Args:
            readings: the values of a gauge, or of a counter that somebody else keeps.
            open_metrics: as OpenMetrics has it, which names a counter without its ending, and has exemplars.
        """
        name = self.name.removesuffix("_total") if open_metrics else self.name
        yield f"# HELP {name} {_escaped(self.meaning)}"
        yield f"# TYPE {name} {self.kind}"
        numbers = self._numbers if readings is None else {tuple(key): [value] for key, value in readings.items()}
        for values, found in numbers.items():
            labels = [
                f'{name}="{_escaped(value, quoted=True)}"' for name, value in zip(self.labels, values, strict=True)
            ]
            if self.bounds:
                yield from self._histogram(labels, found, values if open_metrics else None)
            else:
                yield _sample(self.name, labels, found[0])

    def _histogram(self, labels: Sequence[str], numbers: Numbers, exemplified: tuple[str, ...] | None) -> Iterator[str]:
        below = 0.0
        for place, (bound, number) in enumerate(zip((*map(_shown, self.bounds), "+Inf"), numbers, strict=False)):
            below += number
            yield _sample(f"{self.name}_bucket", [*labels, f'le="{bound}"'], below) + self._example(exemplified, place)
        yield _sample(f"{self.name}_sum", labels, numbers[-1])
        yield _sample(f"{self.name}_count", labels, below)

    def _example(self, values: tuple[str, ...] | None, place: int) -> str:
        if values is None or (example := self._examples.get((values, place))) is None:
            return ""
        trace, value = example
        return f' # {{trace_id="{trace}"}} {_shown(value)}'


class Names:
    """Names that come from outside of the code, of which so many are called by their own name.

    Args:
        most: how many; every further one is ``other``.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: set[str] = set()

    def of(self, name: str) -> str:
        """The name, or ``other``."""
        if name not in self._known:
            if len(self._known) >= self._most:
                return OTHER
            self._known.add(name)
        return name


def put(numbers: Numbers, bounds: Sequence[float], value: float) -> None:
    """Add a value to a histogram's numbers; a bucket holds its own bound."""
    numbers[bisect_left(bounds, value)] += 1
    numbers[-1] += value


def exposition(families: Iterable[Family], readings: Mapping[Family, Readings], *, open_metrics: bool = False) -> str:
    """All families as one text; those with readings are told by these alone."""
    lines = (line for each in families for line in each.lines(readings.get(each), open_metrics=open_metrics))
    return "".join(f"{line}\n" for line in lines) + ("# EOF\n" if open_metrics else "")


def _sample(name: str, labels: Sequence[str], value: float) -> str:
    return f"{name}{{{','.join(labels)}}} {_shown(value)}" if labels else f"{name} {_shown(value)}"


def _shown(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(float(value))


def _escaped(text: str, *, quoted: bool = False) -> str:
    text = text.replace("\\", "\\\\").replace("\n", "\\n")
    return text.replace('"', '\\"') if quoted else text
