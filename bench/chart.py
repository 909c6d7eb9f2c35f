"""Two charts as plain SVG: bars of what a question costs, and curves of how that grows."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from bench.catalogue import SERVICES
from bench.growth import CURVES, SUBJECT
from bench.run import Run
from bench.summary import MARK, Figure, summarise

__all__ = ["Bar", "Panel", "bars", "growth_chart", "panels", "question_chart"]

_COLOURS = {
    "toolchat": "#2563eb",
    "framework": "#9ca3af",
    "client": "#6b7280",
    "spring": "#d97706",
    "limit": "#059669",
}
_INK, _FAINT = "#1f2937", "#e5e7eb"
_FONT = "font-family='system-ui, Segoe UI, Helvetica, Arial, sans-serif'"
_WIDTH = 860
_LEFT, _RIGHT, _ROW = 300, 70, 26
_COLUMNS, _PANEL_WIDTH, _PANEL_HEIGHT = 3, 280, 210


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar."""

    title: str
    figure: Figure
    kind: str
    """What decides its colour: the kind of a service."""


@dataclass(frozen=True, slots=True)
class Panel:
    """One curve with its points."""

    title: str
    points: Sequence[tuple[float, Figure]]


def question_chart(run: Run) -> str:
    """Bars of CPU per question with one time-tool call, cheapest first."""
    summary = summarise(run.samples)
    found = [(SERVICES[name], summary.figure(name, "time-32", "cpu_ms")) for name in run.services]
    shown = [Bar(service.title, figure, service.kind) for service, figure in found if figure]
    title = "CPU per question with one tool call and two model turns, ms (logarithmic; less is better)"
    shown.sort(key=lambda bar: bar.figure.median)
    warm = "; Spring AI is warm" if any(bar.kind == "spring" for bar in shown) else ""
    note = f"32 connections, one core{warm}; {run.machine}; {run.date}"
    return bars(shown, title, note + _explained(bar.figure for bar in shown))


def growth_chart(run: Run) -> str:
    """Curves of toolchat's CPU per question."""
    summary = summarise(run.samples)
    found = [
        (curve, [(point, summary.figure(SUBJECT, f"{curve.name}/{point}", "cpu_ms")) for point in curve.points])
        for curve in CURVES
    ]
    shown = [Panel(curve.title, [(point, figure) for point, figure in figures if figure]) for curve, figures in found]
    note = _explained(figure for panel in shown for _, figure in panel.points)
    return panels([each for each in shown if each.points], "toolchat: CPU ms per question against …", run.date + note)


def bars(rows: Sequence[Bar], title: str, note: str) -> str:
    """Draw horizontal bars on a logarithmic axis."""
    low = 10 ** math.floor(math.log10(min((row.figure.median for row in rows), default=0.1)) - 0.01)
    high = 10 ** math.ceil(math.log10(max((row.figure.median for row in rows), default=1)))
    space = _WIDTH - _LEFT - _RIGHT

    def x(value: float) -> float:
        return _LEFT + space * math.log(value / low) / math.log(high / low)

    bottom = 52 + _ROW * len(rows)
    parts = [_text(16, 24, title, 15, weight=600)]
    for exponent in range(round(math.log10(low)), round(math.log10(high)) + 1):
        at = x(10**exponent)
        parts += [_line(at, 44, at, bottom, _FAINT), _text(at, bottom + 16, f"{10.0**exponent:g}", 11, "middle")]
    for number, row in enumerate(rows):
        top = 50 + _ROW * number
        parts += [
            _text(_LEFT - 8, top + 14, row.title, 13, "end"),
            f"<rect x='{_LEFT}' y='{top}' width='{x(row.figure.median) - _LEFT:.1f}' height='{_ROW - 8}' rx='2' "
            f"fill='{_COLOURS[row.kind]}'/>",
            _text(x(row.figure.median) + 6, top + 14, row.figure.text(2), 12),
        ]
    parts.append(_text(16, bottom + 38, note, 11))
    return _svg(_WIDTH, bottom + 50, title, parts)


def panels(drawn: Sequence[Panel], title: str, note: str) -> str:
    """Draw one small diagram per curve; x is logarithmic, y begins at zero."""
    parts = [_text(16, 24, title, 15, weight=600)]
    for number, panel in enumerate(drawn):
        left = 16 + (number % _COLUMNS) * _PANEL_WIDTH
        top = 40 + (number // _COLUMNS) * _PANEL_HEIGHT
        parts += _panel(panel, left, top)
    height = 40 + math.ceil(len(drawn) / _COLUMNS) * _PANEL_HEIGHT
    parts.append(_text(16, height + 8, f"x is logarithmic, y begins at 0; {note}", 11))
    return _svg(_WIDTH, height + 20, title, parts)


def _panel(panel: Panel, left: float, top: float) -> list[str]:
    width, height, floor = _PANEL_WIDTH - 64, _PANEL_HEIGHT - 78, top + _PANEL_HEIGHT - 46
    highest = max(figure.median for _, figure in panel.points) * 1.15
    last = math.log10(max(point for point, _ in panel.points))
    first = math.log10(min(point for point, _ in panel.points))

    def place(point: float, value: float) -> tuple[float, float]:
        return left + 24 + width * (math.log10(point) - first) / (last - first or 1), floor - height * value / highest

    at = [place(point, figure.median) for point, figure in panel.points]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in at)
    parts = [
        _text(left + 8, top + 14, panel.title, 13),
        _line(left + 12, floor, left + 36 + width, floor, _INK),
        f"<polyline points='{path}' fill='none' stroke='{_COLOURS['toolchat']}' stroke-width='2'/>",
    ]
    for (x, y), (point, figure) in zip(at, panel.points, strict=True):
        parts += [
            f"<circle cx='{x:.1f}' cy='{y:.1f}' r='3' fill='{_COLOURS['toolchat']}'/>",
            _text(x, y - 8, figure.text(2), 11, "middle"),
            _text(x, floor + 15, _short(point), 11, "middle"),
        ]
    return parts


def _explained(figures: Iterable[Figure]) -> str:
    marked = any(each.marked for each in figures)
    return f"; {MARK} disturbed in every round, does not count" if marked else ""


def _short(number: float) -> str:
    for size, unit in ((10**6, "M"), (10**3, "k")):
        if number >= size:
            return f"{number / size:g}{unit}"
    return f"{number:g}"


def _text(x: float, y: float, text: str, size: int, anchor: str = "start", weight: int = 400) -> str:
    return (
        f"<text x='{x:.1f}' y='{y:.1f}' font-size='{size}' font-weight='{weight}' text-anchor='{anchor}' "
        f"fill='{_INK}'>{escape(text)}</text>"
    )


def _line(x1: float, y1: float, x2: float, y2: float, colour: str) -> str:
    return f"<line x1='{x1:.1f}' y1='{y1:.1f}' x2='{x2:.1f}' y2='{y2:.1f}' stroke='{colour}'/>"


def _svg(width: float, height: float, title: str, parts: Sequence[str]) -> str:
    head = f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width:g} {height:g}' role='img' {_FONT}>"
    background = f"<rect width='{width:g}' height='{height:g}' fill='#ffffff'/>"
    return "\n".join([head, f"<title>{escape(title)}</title>", background, *parts, "</svg>", ""])
