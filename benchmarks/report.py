"""The run as Markdown tables."""

from collections.abc import Callable, Iterable, Sequence

from benchmarks.catalogue import LIMIT, SERVICES, Service
from benchmarks.goals import GOALS, better_peers
from benchmarks.growth import CURVES, SUBJECT
from benchmarks.pairs import STREAM_PACE
from benchmarks.ratios import PAIRS
from benchmarks.run import Run
from benchmarks.summary import MARK, Figure, Summary, summarise
from benchmarks.wire import STREAM
from benchmarks.wires import has_wires, wires_table

__all__ = ["costs_table", "goals_table", "markdown", "where"]

_NONE = "–"


def markdown(run: Run) -> str:
    """Write everything that a run found."""
    summary = summarise(run.samples)
    services = [SERVICES[name] for name in run.services]
    parts = [
        where(run),
        "### Goals\n\n" + goals_table(summary),
        "### By turns\n\n" + _pairs(summary),
        "### One question, time tool\n\n" + _questions(summary, services, "time"),
        "### One question, weather tool\n\n" + _questions(summary, services, "weather"),
        "### Many at once\n\n" + _crowds(summary, services),
        *(["### Other people's wires\n\n" + _wires(summary)] if has_wires(run.samples) else []),
        "### Start and memory\n\n" + _starts(summary, services),
        *(["### How it grows\n\n" + _growth(summary)] if any(each.subject == SUBJECT for each in run.samples) else []),
        "### Where others need less\n\n" + _better(summary, services),
        _fine_print(run, summary),
    ]
    return "\n\n".join(parts) + "\n"


def where(run: Run) -> str:
    """When, on what and with which versions it was measured."""
    versions = ", ".join(f"{name} {version}" for name, version in run.versions.items())
    return (
        f"Measured on {run.date} on {run.machine}: each service on one core, the fake upstream and the load on the "
        f"other; medians of the interleaved rounds, {run.rounds} in all (lowest–highest); every answer checked, every "
        f"upstream call counted. {versions}."
    )


def goals_table(summary: Summary) -> str:
    """Every goal, met or not."""
    rows = []
    for goal in GOALS:
        verdict = goal.verdict(summary)
        met = {True: "yes", False: "**no**", None: _NONE}[verdict.met]
        figures = (verdict.framework, verdict.limit, verdict.toolchat)
        rows.append([goal.what, *(_text(each, goal.digits) for each in figures), verdict.wanted, met])
    return _table(["what", "best framework", "limit", "toolchat", "goal", "met"], rows)


def _wires(summary: Summary) -> str:
    header = ["wire, 32 connections", "toolchat, CPU ms", "beside", "goal", "met", "peer, CPU ms"]
    return _table(header, wires_table(summary))


def _pairs(summary: Summary) -> str:
    rows = []
    for subject, phase, title in PAIRS:
        mine, other, ratio = (summary.figure(subject, phase, metric) for metric in ("cpu_ms", "other_cpu_ms", "ratio"))
        if ratio:
            rows.append([title, _text(mine, 3), _text(other, 3), _text(ratio, 2, spread=True)])
    return (
        "Two services side by side, asked in turns of less than a second; medians of the pairs, so the ratio is not "
        "exactly that of the two medians.\n\n" + _table(["what", "CPU ms", "÷ CPU ms", "ratio"], rows)
    )


def _questions(summary: Summary, services: Sequence[Service], tool: str) -> str:
    busy, single = f"{tool}-32", f"{tool}-1"
    columns: list[tuple[str, Callable[[str], str]]] = [
        ("CPU ms, 32 connections", lambda name: _text(summary.figure(name, busy, "cpu_ms"), 3, spread=True)),
        ("× limit", lambda name: _ratio(summary, name, busy, "cpu_ms")),
        ("rps", lambda name: _text(summary.figure(name, busy, "rps"), 0)),
        ("p50/p99 ms", lambda name: _percentiles(summary, name, busy)),
        ("CPU ms, 1 connection", lambda name: _text(summary.figure(name, single, "cpu_ms"), 3, spread=True)),
        ("p50/p99 ms", lambda name: _percentiles(summary, name, single)),
    ]
    if tool == "time":
        columns.insert(0, ("first 1,000: CPU ms", lambda name: _text(summary.figure(name, "cold", "cpu_ms"), 3)))
    return _columns([each for each in services if tool in each.asked], columns)


def _crowds(summary: Summary, services: Sequence[Service]) -> str:
    ideal = f"{STREAM.first_text(*STREAM_PACE):.2f} and {STREAM.end(*STREAM_PACE):.2f}"
    columns: list[tuple[str, Callable[[str], str]]] = [
        ("burst: all answered, s", lambda name: _text(summary.figure(name, "burst", "wall_s"), 2, spread=True)),
        ("CPU ms", lambda name: _text(summary.figure(name, "burst", "cpu_ms"), 3)),
        ("streams: first text p50, s", lambda name: _text(summary.figure(name, "streams", "first_text_p50_s"), 2)),
        ("all ended, s", lambda name: _text(summary.figure(name, "streams", "wall_s"), 2, spread=True)),
        ("CPU ms per stream", lambda name: _text(summary.figure(name, "streams", "cpu_ms"), 3)),
        ("× limit", lambda name: _ratio(summary, name, "streams", "cpu_ms")),
    ]
    return (
        "The burst is 1,000 questions at once against a model that takes 500 ms per call (ideal 1.0 s). The streams "
        f"are 500 at once, {STREAM.call_pieces + STREAM.text_pieces} pieces in two turns, 200 ms to a turn's first "
        "piece and 50 ms from piece to piece (ideal: first text and end after "
        f"{ideal} s).\n\n" + _columns(services, columns)
    )


def _starts(summary: Summary, services: Sequence[Service]) -> str:
    columns: list[tuple[str, Callable[[str], str]]] = [
        ("start to first 200, s", lambda name: _text(summary.figure(name, "start", "first_200_s"), 2, spread=True)),
        ("CPU s until then", lambda name: _text(summary.figure(name, "start", "start_cpu_s"), 2)),
        ("RSS then, MiB", lambda name: _text(summary.figure(name, "start", "rss_mib"), 0)),
        ("after the burst", lambda name: _text(summary.figure(name, "burst", "rss_mib"), 0)),
        ("6 s after everything", lambda name: _text(summary.figure(name, "settled", "rss_mib"), 0)),
    ]
    return _columns(services, columns)


def costs_table(summary: Summary, services: Sequence[Service]) -> str:
    """What services cost when they have just been started, and when they are warm."""

    def text(phase: str, metric: str, digits: int) -> Callable[[str], str]:
        return lambda name: _text(summary.figure(name, phase, metric), digits)

    columns: list[tuple[str, Callable[[str], str]]] = [
        ("first 1,000: CPU ms", text("cold", "cpu_ms", 3)),
        ("warm, 32 connections", text("time-32", "cpu_ms", 3)),
        ("× limit", lambda name: _ratio(summary, name, "time-32", "cpu_ms")),
        ("warm, 1 connection", text("time-1", "cpu_ms", 3)),
        ("p50/p99 ms", lambda name: _percentiles(summary, name, "time-1")),
        ("1,000 at once, s", text("burst", "wall_s", 2)),
        ("CPU ms per stream", text("streams", "cpu_ms", 2)),
        ("start, s", text("start", "first_200_s", 2)),
        ("memory MiB then", text("start", "rss_mib", 0)),
        ("at the end", text("settled", "rss_mib", 0)),
    ]
    return _columns(services, columns)


def _growth(summary: Summary) -> str:
    rows = []
    for curve in CURVES:
        figures = [(point, summary.figure(SUBJECT, f"{curve.name}/{point}", "cpu_ms")) for point in curve.points]
        shown = [f"{point:,}: {_text(figure, 3)}" for point, figure in figures]
        rows.append([curve.title, "; ".join(shown)])
    return _table(["toolchat's CPU ms per question against", "measured"], rows)


def _better(summary: Summary, services: Sequence[Service]) -> str:
    header = ["what", "toolchat", "who needs less"]
    rows = [[title, mine, "; ".join(others)] for title, mine, others in better_peers(summary, services)]
    return _table(header, rows) if rows else "No peer needs less than toolchat in any figure of these tables."


def _fine_print(run: Run, summary: Summary) -> str:
    reasons = summary.reasons()
    marked = sum(map(len, reasons.values()))
    upstream, load = (_text(summary.figure(LIMIT, "time-32", metric), 0) for metric in ("upstream_us", "load_us"))
    lines = [
        f"While the limit answers 32 connections, the fake upstream costs {upstream} µs of CPU per call and the load "
        f"{load} µs per question, both on the other core. {len(run.samples)} measurements, {marked} of them marked "
        "and not counted (a wrong answer, a missing upstream call, or more than 5 % of a core taken by others). "
        f"{MARK}: every measurement of the figure is marked. Each other figure rests on at least "
        f"{summary.fewest()} that count.",
        *(f"Not measured: {line}" for line in run.missing),
    ]
    return "\n\n".join(lines)


def _columns(services: Iterable[Service], columns: Sequence[tuple[str, Callable[[str], str]]]) -> str:
    rows = [[service.title, *(column(service.name) for _, column in columns)] for service in services]
    return _table(["service", *(title for title, _ in columns)], rows)


def _text(figure: Figure | None, digits: int, *, spread: bool = False) -> str:
    return figure.text(digits, spread=spread) if figure else _NONE


def _ratio(summary: Summary, subject: str, phase: str, metric: str) -> str:
    mine, limit = summary.figure(subject, phase, metric), summary.figure(LIMIT, phase, metric)
    if not mine or not limit or not limit.median:
        return _NONE
    return f"{mine.median / limit.median:.1f}" + _mark(mine, limit)


def _percentiles(summary: Summary, subject: str, phase: str) -> str:
    half, most = (summary.figure(subject, phase, metric) for metric in ("p50_ms", "p99_ms"))
    return f"{half.median:.2f} / {most.median:.2f}{_mark(half, most)}" if half and most else _NONE


def _mark(*figures: Figure) -> str:
    return f" {MARK}" if any(each.marked for each in figures) else ""


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
