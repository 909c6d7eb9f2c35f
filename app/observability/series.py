"""Metrics and their text formats: Prometheus (version 0.0.4), and OpenMetrics (1.0.0) with exemplars."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

__all__ = ["OTHER", "Family", "Names", "Numbers", "Readings", "exposition", "put"]

OTHER = "other"
"""Label value for unknown names, and for names beyond a limit."""
Numbers = list[float]
"""The numbers of one set of label values. A counter has its value; a histogram has a count for each bucket, a count for
values above the last bound, and the sum."""
Readings = Mapping[Sequence[str], float]
"""Values by label values."""


class Family:
    """A metric with all its series.

    Args:
        kind: Prometheus' type.
        name: without ``toolchat_``; ends in its unit, a counter's in ``_total``.
        meaning: the help text, one line.
        labels: names of the labels.
        bounds: upper bounds of a histogram's buckets, ascending.
        most: limit on sets of label values; further ones share a set in which each value is ``other``.
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
        """Exemplars, trace and value, by label values and bucket."""
        if kind == "counter" and not labels:
            self._new(())

    def at(self, *values: str) -> Numbers:
        """Return the numbers of a set of label values. Keep the returned list to avoid the lookup."""
        return self._numbers.get(values) or self._new(values)

    def add(self, *values: str, by: float = 1) -> None:
        """Add to a counter."""
        self.at(*values)[0] += by

    def observe(self, value: float, *values: str) -> None:
        """Add a value to a histogram."""
        put(self.at(*values), self.bounds, value)

    def exemplify(self, value: float, trace: str, *values: str) -> None:
        """Set the exemplar of the bucket that a value belongs to; the latest wins."""
        if values in self._numbers:
            self._examples[values, bisect_left(self.bounds, value)] = trace, value

    def _new(self, values: tuple[str, ...]) -> Numbers:
        if len(self._numbers) >= self._most:
            values = (OTHER,) * len(self.labels)
        return self._numbers.setdefault(values, [0.0] * (len(self.bounds) + 2 if self.bounds else 1))

    def lines(self, readings: Readings | None = None, *, open_metrics: bool = False) -> Iterator[str]:
        """Yield the lines of the metric in the text format.

        Args:
            readings: values read from elsewhere, instead of the recorded numbers.
            open_metrics: use OpenMetrics, in which a counter's metadata lacks ``_total`` and buckets have exemplars.
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
    """Limits the number of different names from outside, so that labels stay bounded.

    Args:
        most: the limit; every further name is ``other``.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: set[str] = set()

    def of(self, name: str) -> str:
        """Return the name, or ``other`` if it is new and the limit is reached."""
        if name not in self._known:
            if len(self._known) >= self._most:
                return OTHER
            self._known.add(name)
        return name


def put(numbers: Numbers, bounds: Sequence[float], value: float) -> None:
    """Add a value to a histogram's numbers; the bound of a bucket is inclusive."""
    numbers[bisect_left(bounds, value)] += 1
    numbers[-1] += value


def exposition(families: Iterable[Family], readings: Mapping[Family, Readings], *, open_metrics: bool = False) -> str:
    """Return all metrics as text; for those with readings, only the readings."""
    lines = (line for each in families for line in each.lines(readings.get(each), open_metrics=open_metrics))
    return "".join(f"{line}\n" for line in lines) + ("# EOF\n" if open_metrics else "")


def _sample(name: str, labels: Sequence[str], value: float) -> str:
    return f"{name}{{{','.join(labels)}}} {_shown(value)}" if labels else f"{name} {_shown(value)}"


def _shown(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(float(value))


def _escaped(text: str, *, quoted: bool = False) -> str:
    text = text.replace("\\", "\\\\").replace("\n", "\\n")
    return text.replace('"', '\\"') if quoted else text
