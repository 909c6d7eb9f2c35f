"""A run as Markdown: `results.md`, and the tables of `docs/comparison.md`, which stand there between comments."""

import re
from collections.abc import Callable, Iterable, Sequence

from benchmarks.catalogue import LIMIT, SERVICES, Service
from benchmarks.growth import CURVES, SUBJECT
from benchmarks.measure import FIRST_TEXTS, own_milliseconds
from benchmarks.ratios import PAIRS
from benchmarks.run import Run
from benchmarks.summary import MARK, Figure, Summary, summarise

__all__ = ["compared", "markdown"]


_NONE = "–"
_BESIDE_SPRING = ("toolchat", "toolchat-dashscope", "spring", "spring-virtual", LIMIT)
_WITHOUT = "The kept run was made without Java: Spring AI was not measured in it."


def markdown(run: Run) -> str:
    """Write what a run found of toolchat alone: what features cost beside the same without them, and how costs grow."""
    summary = summarise(run.samples)
    marked = sum(bool(each.marks) for each in run.samples)
    parts = [
        _where(run),
        "Two services side by side, asked in turns of less than a second; medians of the pairs, so the ratio is not "
        "exactly that of the two medians.",
        _pairs(summary),
        _growth(summary),
        f"{len(run.samples)} measurements, {marked} of them marked and not counted (a wrong answer, a missing upstream "
        f"call, or more than 5 % of a core taken by others). {MARK}: every measurement of the figure is marked.",
        *(f"Not measured: {line}" for line in run.missing),
    ]
    return "\n\n".join(parts) + "\n"


def compared(page: str, run: Run) -> str:
    """Put a run's costs into the page.

    Raises:
        ValueError: a place for figures is not on the page.
    """
    summary = summarise(run.samples)
    services = [SERVICES[name] for name in _BESIDE_SPRING if name in run.services]
    frameworks = [
        SERVICES[name] for name in run.services if SERVICES[name].kind == "framework" or name in ("toolchat", LIMIT)
    ]
    has_spring = any(each.kind == "spring" for each in services)
    blocks = {
        "Spring AI": costs_table(summary, services) if has_spring else _WITHOUT,
        "agent frameworks": f"{costs_table(summary, frameworks)}\n\n{_where(run)}",
        "first text": _first_texts(summary, [SERVICES[name] for name in run.services]),
    }
    for name, block in blocks.items():
        place = re.compile(f"(?<=<!-- {name} -->\n)[^<]*(?=<!-- end -->)")
        page, found = place.subn(f"\n{block}\n\n".replace("\\", r"\\"), page)
        if not found:
            raise ValueError(f"no place for {name}")
    return page


def costs_table(summary: Summary, services: Iterable[Service]) -> str:
    """What services cost when they have just been started, and when they are warm."""

    def text(phase: str, metric: str, digits: int) -> Callable[[str], str]:
        return lambda name: _text(summary.figure(name, phase, metric), digits)

    columns: list[tuple[str, Callable[[str], str]]] = [
        ("first 1,000: CPU ms", text("cold", "cpu_ms", 3)),
        ("warm, 32 connections", text("time-32", "cpu_ms", 3)),
        ("× limit", lambda name: _ratio(summary, name)),
        ("warm, 1 connection", text("time-1", "cpu_ms", 3)),
        ("p50/p99 ms", lambda name: _percentiles(summary, name)),
        ("1,000 at once, s", text("burst", "wall_s", 2)),
        ("CPU ms per stream", text("streams", "cpu_ms", 2)),
        ("start, s", text("start", "first_200_s", 2)),
        ("memory MiB then", text("start", "rss_mib", 0)),
        ("at the end", text("settled", "rss_mib", 0)),
    ]
    rows = [[service.title, *(column(service.name) for _, column in columns)] for service in services]
    return _table(["service", *(title for title, _ in columns)], rows)


def _first_texts(summary: Summary, services: Iterable[Service]) -> str:
    """What services add to the model's own time before the first word of a stream, by the clock."""

    def added(name: str, phase: str) -> str:
        figure = summary.figure(name, phase, "first_ms")
        own = own_milliseconds(FIRST_TEXTS[phase][0])
        return f"{figure.median - own:,.1f}{_mark(figure)}" if figure else _NONE

    kinds = {1: "without a tool", 2: "with a tool"}
    header = [f"{kinds[calls]}, {streams} stream{'s' * (streams > 1)}" for calls, streams in FIRST_TEXTS.values()]
    rows = [[each.title, *(added(each.name, phase) for phase in FIRST_TEXTS)] for each in services]
    return _table(["added ms", *header], rows)


def _where(run: Run) -> str:
    """When, on what and with which versions it was measured."""
    versions = ", ".join(f"{name} {version}" for name, version in run.versions.items())
    return (
        f"Measured on {run.date} on {run.machine}: each service on one core, the fake upstream and the load on the "
        f"other; medians of the interleaved rounds, {run.rounds} in all (lowest–highest); every answer checked, every "
        f"upstream call counted. {versions}."
    )


def _pairs(summary: Summary) -> str:
    rows = []
    for subject, phase, title in PAIRS:
        mine, other, ratio = (summary.figure(subject, phase, metric) for metric in ("cpu_ms", "other_cpu_ms", "ratio"))
        if ratio:
            rows.append([title, _text(mine, 3), _text(other, 3), _text(ratio, 2, spread=True)])
    return _table(["what", "CPU ms", "÷ CPU ms", "ratio"], rows)


def _growth(summary: Summary) -> str:
    rows = []
    for curve in CURVES:
        figures = [(point, summary.figure(SUBJECT, f"{curve.name}/{point}", "cpu_ms")) for point in curve.points]
        rows.append([curve.title, "; ".join(f"{point:,}: {_text(figure, 3)}" for point, figure in figures)])
    return _table(["toolchat's CPU ms per question against", "measured"], rows)


def _text(figure: Figure | None, digits: int, *, spread: bool = False) -> str:
    return figure.text(digits, spread=spread) if figure else _NONE


def _ratio(summary: Summary, subject: str) -> str:
    mine, limit = (summary.figure(name, "time-32", "cpu_ms") for name in (subject, LIMIT))
    return f"{mine.median / limit.median:.1f}{_mark(mine, limit)}" if mine and limit else _NONE


def _percentiles(summary: Summary, subject: str) -> str:
    half, most = (summary.figure(subject, "time-1", metric) for metric in ("p50_ms", "p99_ms"))
    return f"{half.median:.2f} / {most.median:.2f}{_mark(half, most)}" if half and most else _NONE


def _mark(*figures: Figure) -> str:
    return f" {MARK}" if any(each.marked for each in figures) else ""


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
