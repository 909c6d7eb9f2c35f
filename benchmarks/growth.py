"""How the cost of a question grows: with tools, history, the size of a result, and concurrency."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.catalogue import toolchat_environment
from benchmarks.load import Question, ask, question
from benchmarks.stage import BenchError, Measurement, Stage, Target
from benchmarks.variants import in_session

__all__ = ["CURVES", "SUBJECT", "Curve", "grown", "measure_growth"]


SUBJECT = "toolchat grows"
"""The subject of every sample of a curve; its phase is ``<curve>/<x>``."""

_TIME = "/time/chat-tool-function"
_SESSIONS = 16
_TOOL = '''async def {name}(place: str = "here", count: int = 1) -> str:
    """Look something up in a place, as often as it is asked for."""
    return "grown result"
'''
_RESULT = '''async def {name}() -> str:
    """Give a result of some size."""
    return RESULT
'''
_LINE = "a line of the result, with a 'quote' in it\n"


@dataclass(frozen=True, slots=True)
class Curve:
    """One curve of the chart."""

    name: str
    title: str
    points: tuple[int, ...]


CURVES = (
    Curve("tools", "tools offered", (1, 10, 100, 500)),
    Curve("history", "messages of history", (1, 20, 200)),
    Curve("result", "size of the tool's result, bytes", (1_000, 10_000, 100_000, 1_000_000)),
    Curve("concurrency", "questions at once", (1, 10, 100, 1000, 2000)),
)


async def measure_growth(stage: Stage, seconds: float, attempts: int) -> list[str]:
    """Measure every curve once; samples go to the stage.

    Args:
        stage: where to measure.
        seconds: length of each measurement.
        attempts: most measurements of one point, while they are marked.

    Returns:
        A line for each curve that could not be measured.
    """
    parts: Sequence[Callable[[Stage, float, int], Awaitable[None]]] = (_folders, _concurrency, _history)
    missing = []
    for part in parts:
        try:
            await part(stage, seconds, attempts)
        except BenchError as error:
            missing.append(f"{part.__name__.strip('_')}: {error}")
    return missing


async def _folders(stage: Stage, seconds: float, attempts: int) -> None:
    """Tools and results."""
    async with _toolchat(stage, grown(stage), _TIME) as target:
        for curve in CURVES:
            for point in curve.points if curve.name in ("tools", "result") else ():
                make = question(f"/{curve.name}{point}/chat-tool-function")
                await _point(stage, target, curve.name, point, make, seconds, attempts)


def grown(stage: Stage) -> Mapping[str, str]:
    """Write a tool folder for each point of tools and results; gives the service's variables."""
    folder = stage.folder / "tools"
    if not folder.exists():
        folder.mkdir()
        _write_folders(folder)
    return {"TOOLS_PATH": str(folder.resolve()), "TOOL_RESULT_MAX_CHARS": "2000000", "TOOL_SEARCH_ABOVE": "0"}


async def _concurrency(stage: Stage, seconds: float, attempts: int) -> None:
    # The load has one address, and one client gets half of the questions at once.
    more = {"MAX_QUESTIONS": str(2 * max(_points("concurrency")))}
    async with _toolchat(stage, more, _TIME) as target:
        for point in _points("concurrency"):
            make = question(_TIME)
            await _point(stage, target, "concurrency", point, make, seconds, attempts, connections=point)


async def _history(stage: Stage, seconds: float, attempts: int) -> None:
    """Each question is asked in a session that has so many messages already, or in a new one."""
    for point in _points("history"):
        turns = (point + 1) // 2 if point > 1 else 0
        async with _toolchat(stage, {}, "/chat?tools=getCityTimeFunction") as target:
            make = in_session(turns)
            await ask(target.ports, make, connections=_SESSIONS, questions=_SESSIONS * turns or 1)
            await _point(stage, target, "history", point, make, seconds, attempts, connections=_SESSIONS)


async def _point(
    stage: Stage,
    target: Target,
    curve: str,
    point: int,
    make: Question,
    seconds: float,
    attempts: int,
    connections: int = 32,
) -> None:
    await ask(target.ports, make, connections=connections, seconds=seconds / 2)
    what = Measurement(f"{curve}/{point}", make, 2, connections, seconds=seconds)
    await stage.measured(target, what, attempts)


@asynccontextmanager
async def _toolchat(stage: Stage, more: Mapping[str, str], first: str) -> AsyncGenerator[Target, None]:
    def environment(port: int, upstream: str) -> Mapping[str, str]:
        return toolchat_environment("openai", port, upstream, **more)

    def command(_: int) -> Sequence[str]:
        return ["python", "-m", "app"]

    async with stage.started(SUBJECT, command, environment, first) as (target, _):
        yield target


def _points(name: str) -> tuple[int, ...]:
    return next(curve.points for curve in CURVES if curve.name == name)


def _write_folders(tools: Path) -> None:
    for count in _points("tools"):
        names = [f"tools{count}_{number:03}" for number in range(count)]
        _write_folder(tools / f"tools{count}", names, _TOOL)
    for size in _points("result"):
        result = f"RESULT = ('grown result ' + {_LINE!r} * {size // len(_LINE) + 1})[:{size}]\n\n\n"
        _write_folder(tools / f"result{size}", [f"result{size}_read"], result + _RESULT)


def _write_folder(folder: Path, names: Sequence[str], template: str) -> None:
    functions = "\n\n".join(template.replace("{name}", name) for name in names)
    module = f"module = ToolModule(functions=({', '.join(names)},), default_query='What is it now?')\n"
    folder.mkdir()
    code = f"from toolchat import ToolModule\n\n\n{functions}\n\n{module}"
    (folder / "__init__.py").write_text(code)
