"""Who else used the cores while something was measured, and what makes a measurement worthless."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import psutil

__all__ = ["CoreUse", "Watch", "marks_of"]


FOREIGN_SHARE = 0.05
"""Share of a core that others may take before a measurement is marked."""

_CLOCK_GRAIN = 0.04
"""Seconds by which the kernel's ticks may be off over one measurement."""


@dataclass(frozen=True, slots=True)
class CoreUse:
    """What happened on one core during a measurement, in seconds."""

    core: int
    wall: float
    busy: float
    """Time in which anything ran, interrupts included."""
    own: float
    """CPU time of the processes of the benchmark on that core."""
    stolen: float
    """Time that the hypervisor gave to others."""

    @property
    def foreign(self) -> float:
        """CPU time of processes outside of the benchmark."""
        return max(self.busy - self.own, 0.0)


class Watch:
    """Reads the kernel's accounts of two cores around a measurement."""

    def __init__(self, cores: Sequence[int]) -> None:
        self._cores = cores
        self._began = time.perf_counter()
        self._before = _accounts(cores)

    def uses(self, own: Sequence[float]) -> tuple[CoreUse, ...]:
        """What happened since the watch was made; ``own`` is the benchmark's CPU seconds on each core."""
        wall = time.perf_counter() - self._began
        after = _accounts(self._cores)
        return tuple(
            CoreUse(core, wall, now[0] - before[0], mine, now[1] - before[1])
            for core, before, now, mine in zip(self._cores, self._before, after, own, strict=True)
        )


def marks_of(uses: Sequence[CoreUse], *, wrong: int, asked: int, upstream_calls: int, expected: int) -> tuple[str, ...]:
    """Say why a measurement must not be counted; empty when it may be.

    Args:
        uses: what happened on the cores.
        wrong: answers that were wrong or missing.
        asked: how many questions were asked.
        upstream_calls: how many calls the upstream counted.
        expected: how many calls the questions need.
    """
    marks = [f"{wrong} of {asked} answers wrong"] if wrong else []
    if upstream_calls != expected:
        marks.append(f"{upstream_calls} upstream calls instead of {expected}")
    for use in uses:
        if use.foreign > FOREIGN_SHARE * use.wall + _CLOCK_GRAIN:
            marks.append(f"others took {use.foreign / use.wall:.0%} of core {use.core}")
        if use.stolen > FOREIGN_SHARE * use.wall + _CLOCK_GRAIN:
            marks.append(f"the hypervisor took {use.stolen / use.wall:.0%} of core {use.core}")
    return tuple(marks)


def _accounts(cores: Sequence[int]) -> list[tuple[float, float]]:
    times = psutil.cpu_times(percpu=True)
    return [
        (each.user + each.nice + each.system + each.irq + each.softirq, each.steal)
        for each in (times[core] for core in cores)
    ]
