"""What the service promises, and whether a run shows it."""

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.catalogue import LIMIT, SERVICES, Service
from benchmarks.ratios import FILE, GUARDED, GUARDED_FILE, REDIS, SESSIONS
from benchmarks.summary import Figure, Summary

__all__ = ["GOALS", "Goal", "Verdict", "better_peers"]


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


def _ratio(what: str, at_most: float, phase: str, subject: str = "toolchat") -> Goal:
    return Goal(what, phase, "ratio", 2, subject, at_most=at_most)


GOALS: Sequence[Goal] = (
    Goal("CPU ms, time, OpenAI-compatible", "time-32", "cpu_ms", 3, cheaper_than_framework=10),
    _ratio("CPU ÷ limit, time", 1.4, "pairs-time"),
    _ratio("… over TLS", 1.4, "pairs-time", "toolchat (TLS)"),
    _ratio("… weather", 2, "pairs-weather"),
    _ratio("CPU ÷ limit, time, DashScope", 2, "pairs-time", "toolchat-dashscope"),
    _ratio("… over TLS", 2, "pairs-time", "toolchat-dashscope (TLS)"),
    _ratio("… weather", 2, "pairs-weather", "toolchat-dashscope"),
    _ratio("CPU ÷ warm Spring AI, platform threads, 32 connections", 0.95, "pairs-spring-32"),
    _ratio("… 1 connection", 1, "pairs-spring-1"),
    _ratio("CPU ÷ warm Spring AI, virtual threads, 32 connections", 0.95, "pairs-spring-virtual-32"),
    _ratio("… 1 connection", 0.95, "pairs-spring-virtual-1"),
    _ratio("CPU with keys and quotas, in memory ÷ without", 1.08, "pairs-guarded", GUARDED),
    _ratio("… in a file", 1.08, "pairs-guarded", GUARDED_FILE),
    _ratio("CPU with traces, 10 % sampled ÷ without", 1.1, "pairs-traced"),
    _ratio("CPU of POST /v1/chat/completions ÷ GET", 1.1, "pairs-completions"),
    _ratio("CPU of a session's question, in memory ÷ without a session", 1.35, "pairs-session", SESSIONS),
    _ratio("… in a file", 1.6, "pairs-session", FILE),
    _ratio("… in Redis", 1.6, "pairs-session", REDIS),
    _ratio("… after 20 turns, in memory", 1.6, "pairs-session-20", SESSIONS),
    _ratio("… after 20 turns, in a file", 1.6, "pairs-session-20", FILE),
    _ratio("… after 20 turns, in Redis", 1.6, "pairs-session-20", REDIS),
    _ratio("CPU after 100 turns of history ÷ after one", 2, "pairs-history"),
    _ratio("CPU with 500 tools offered, all sent ÷ 10", 1.4, "pairs-tools"),
    _ratio("CPU of 500 streams of 40 pieces at once ÷ limit", 1.15, "pairs-streams"),
    Goal("First text of 500 streams at once, p50, s", "streams", "first_text_p50_s", 2, at_most=1.0),
    Goal("First text of 1,000 streams at once, p99, s", "more-streams", "first_text_p99_s", 2, at_most=1.0),
    Goal("Latency ms, time, 1 connection, p50", "time-1", "p50_ms", 2, of_limit=2),
    Goal("1,000 questions at once, model 2 × 500 ms, s (ideal 1.0)", "burst", "wall_s", 2, at_most=1.2),
    Goal("Memory MiB after the first answer", "start", "rss_mib", 0, at_most=62),
    Goal("… with keys and quotas", "start", "rss_mib", 0, GUARDED, at_most=64),
    Goal("… DashScope", "start", "rss_mib", 0, "toolchat-dashscope", at_most=90),
    Goal("Memory MiB after weather, 1,000 at once and streams", "settled", "rss_mib", 0, at_most=85),
    Goal("Start to first 200, s", "start", "first_200_s", 2, at_most=0.8),
)

_COMPARED: Sequence[tuple[str, str, str, int]] = (
    ("start to first 200, s", "start", "first_200_s", 2),
    ("memory MiB after the first answer", "start", "rss_mib", 0),
    ("CPU ms, first 1,000, time", "cold", "cpu_ms", 3),
    *(
        (f"{title}, {tool}, {connections}", f"{tool}-{count}", metric, digits)
        for tool in ("time", "weather")
        for count, connections in ((32, "32 connections"), (1, "1 connection"))
        for title, metric, digits in (("CPU ms", "cpu_ms", 3), ("p50 ms", "p50_ms", 2), ("p99 ms", "p99_ms", 2))
    ),
    ("1,000 at once, s", "burst", "wall_s", 2),
    ("CPU ms, 1,000 at once", "burst", "cpu_ms", 3),
    ("first text of 500 streams, p50, s", "streams", "first_text_p50_s", 2),
    ("CPU ms per stream, 500 at once", "streams", "cpu_ms", 2),
    ("memory MiB at the end", "settled", "rss_mib", 0),
)


def better_peers(summary: Summary, services: Sequence[Service]) -> list[tuple[str, str, list[str]]]:
    """Where peers need less than toolchat: the figure's title, toolchat's, and who needs how much, the best first."""
    peers = [each for each in services if each.kind not in ("toolchat", "limit")]
    rows = []
    for title, phase, metric, digits in _COMPARED:
        mine = summary.figure("toolchat", phase, metric)
        found = [(each.title, summary.figure(each.name, phase, metric)) for each in peers]
        less = [(figure, who) for who, figure in found if mine and figure and figure.median < mine.median]
        if mine and less:
            told = [f"{who} {figure.text(digits)}" for figure, who in sorted(less, key=lambda each: each[0].median)]
            rows.append((title, mine.text(digits), told))
    return rows
