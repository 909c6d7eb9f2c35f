"""From samples to medians: what is marked is not counted, and says so where nothing else is left."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median

from benchmarks.stage import Sample

__all__ = ["MARK", "Cell", "Figure", "Summary", "summarise"]


MARK = "‡"
"""Stands behind a figure of which every measurement is marked."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A median with its range."""

    median: float
    low: float
    high: float
    marked: bool = False

    def text(self, digits: int, *, spread: bool = False) -> str:
        """The figure for a table; with its range if wanted."""
        shown = f"{self.median:,.{digits}f}"
        if spread and self.low != self.high:
            shown += f" ({self.low:,.{digits}f}–{self.high:,.{digits}f})"
        return shown + (f" {MARK}" if self.marked else "")


@dataclass(frozen=True, slots=True)
class Cell:
    """Every measurement of one phase of one subject."""

    counted: tuple[Sample, ...]
    marked: tuple[Sample, ...]

    def has(self, metric: str) -> bool:
        """Whether its measurements tell that."""
        return all(metric in each.values for each in self.counted + self.marked)

    def figure(self, metric: str) -> Figure:
        """The median of what is counted, or of all when nothing is."""
        values = [each.values[metric] for each in self.counted or self.marked]
        return Figure(median(values), min(values), max(values), marked=not self.counted)


@dataclass(frozen=True, slots=True)
class Summary:
    """All cells by subject and phase."""

    cells: Mapping[tuple[str, str], Cell]

    def figure(self, subject: str, phase: str, metric: str) -> Figure | None:
        """A figure, or ``None`` where nothing was measured."""
        cell = self.cells.get((subject, phase))
        return cell.figure(metric) if cell and cell.has(metric) else None


def summarise(samples: Iterable[Sample]) -> Summary:
    """Sort samples into cells."""
    found: dict[tuple[str, str], list[Sample]] = defaultdict(list)
    for sample in samples:
        found[sample.subject, sample.phase].append(sample)
    cells = {
        key: Cell(tuple(each for each in all_ if not each.marks), tuple(each for each in all_ if each.marks))
        for key, all_ in found.items()
    }
    return Summary(cells)
