"""What the service promises, and whether a run shows it."""

from collections.abc import Sequence
from dataclasses import dataclass

from bench.catalogue import LIMIT, SERVICES
from bench.summary import Figure, Summary

__all__ = ["GOALS", "Goal", "Verdict"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """A goal beside what was measured; ``None`` where it was not."""

    framework: Figure | None
    limit: Figure | None
    toolchat: Figure | None
    wanted: str
    met: bool | None
    """``None`` when it cannot be said: not measured, or marked."""


@dataclass(frozen=True, slots=True)
class Goal:
    """At most so much, in units, in parts of the limit, or in parts of the best framework."""

    what: str
    phase: str
    metric: str
    digits: int
    subject: str = "toolchat"
    at_most: float = 0
    of_limit: float = 0
    cheaper_than_framework: float = 0

    def verdict(self, summary: Summary) -> Verdict:
        """Hold the goal to a run."""
        frameworks = [each.name for each in SERVICES.values() if each.kind == "framework"]
        best = summary.best(frameworks, self.phase, self.metric)
        limit = summary.figure(LIMIT, self.phase, self.metric)
        mine = summary.figure(self.subject, self.phase, self.metric)
        return Verdict(best, limit, mine, self.wanted, self._met(best, limit, mine))

    @property
    def wanted(self) -> str:
        """The goal in words."""
        parts = [f"≤ {self.at_most:g}"] if self.at_most else []
        parts += [f"≤ {self.of_limit:g} × limit"] if self.of_limit else []
        parts += [f"{self.cheaper_than_framework:g} × below"] if self.cheaper_than_framework else []
        return ", ".join(parts)

    def _met(self, best: Figure | None, limit: Figure | None, mine: Figure | None) -> bool | None:
        bounds: list[tuple[Figure | None, float]] = []
        if self.of_limit:
            bounds.append((limit, self.of_limit))
        if self.cheaper_than_framework:
            bounds.append((best, 1 / self.cheaper_than_framework))
        if mine is None or mine.marked or any(each is None or each.marked for each, _ in bounds):
            return None
        absolute = not self.at_most or mine.median <= self.at_most
        return absolute and all(each is not None and mine.median <= factor * each.median for each, factor in bounds)


def _cpu(subject: str, title: str, time: float, weather: float) -> Sequence[Goal]:
    return (
        Goal(f"CPU, times the limit, time, {title}", "pairs-time", "ratio", 2, subject, at_most=time),
        Goal(f"CPU, times the limit, weather, {title}", "pairs-weather", "ratio", 2, subject, at_most=weather),
    )


GOALS: Sequence[Goal] = (
    Goal("CPU ms, time, OpenAI-compatible", "time-32", "cpu_ms", 3, cheaper_than_framework=10),
    *_cpu("toolchat", "OpenAI-compatible", 2, 2),
    *_cpu("toolchat-dashscope", "DashScope", 3, 2.5),
    Goal("Latency ms, time, 1 connection, p50", "time-1", "p50_ms", 2, of_limit=2),
    Goal("1,000 questions at once, model 2 × 500 ms, s (ideal 1.0)", "burst", "wall_s", 2, at_most=1.6),
    Goal("Memory MiB, idle", "start", "rss_mib", 0, at_most=60),
    Goal("Memory MiB, after 1,000 questions at once", "burst", "rss_mib", 0, at_most=110),
    Goal("Start to first 200, s", "start", "first_200_s", 2, at_most=0.9),
    Goal("CPU ms per stream, 500 at once", "streams", "cpu_ms", 2, of_limit=2),
    Goal("First text of 500 streams at once, p50, s", "streams", "first_text_p50_s", 2, at_most=1.0),
)
