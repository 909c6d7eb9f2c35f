"""A slice of the benchmark that fails when toolchat's distance to the limit has grown."""

import time
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from pydantic_core import from_json, to_json

from bench.catalogue import LIMIT, SERVICES
from bench.load import ask, question
from bench.stage import BenchError, Measurement, Sample, Stage

__all__ = ["TOLERANCE", "guard", "is_worse", "record"]

TOLERANCE = 1.3
"""How many times the recorded ratio is still good."""

_BASELINE = Path(__file__).parent / "baseline.json"
_PAIRS = 7
_SECONDS = 0.8
_DEADLINE = 28


async def guard(folder: Path) -> bool:
    """Measure and compare with ``baseline.json``; prints what it saw.

    Returns:
        Whether the ratio is still good; also ``True`` when nothing could be counted, which is printed.

    Raises:
        BenchError: an answer was wrong, an upstream call was missing, or there is nothing to compare with.
    """
    if not _BASELINE.exists():
        raise BenchError(f"{_BASELINE.name} is not there: python -m bench --record")
    recorded = float(from_json(_BASELINE.read_bytes())["ratio"])
    ratio, pairs = await _ratio(folder)
    if ratio is None:
        print("bench-guard: NOT MEASURED, since others took the cores all the time; nothing is proved")
        return True
    verdict = "worse than" if is_worse(ratio, recorded) else "within"
    print(
        f"bench-guard: toolchat costs {ratio:.2f} times the limit ({pairs} pairs counted), recorded are "
        f"{recorded:.2f}: {verdict} {TOLERANCE} times that"
    )
    return not is_worse(ratio, recorded)


async def record(folder: Path) -> None:
    """Measure and write ``baseline.json``.

    Raises:
        BenchError: an answer was wrong, or nothing could be counted.
    """
    ratio, pairs = await _ratio(folder)
    if ratio is None:
        raise BenchError("nothing could be counted: others took the cores")
    content = {"ratio": round(ratio, 3), "pairs": pairs, "date": datetime.now(UTC).date().isoformat()}
    _BASELINE.write_bytes(to_json(content, indent=1) + b"\n")
    print(f"bench-guard: recorded {ratio:.2f}")


def is_worse(ratio: float, recorded: float) -> bool:
    """Whether a ratio is beyond what is tolerated."""
    return ratio > TOLERANCE * recorded


async def _ratio(folder: Path) -> tuple[float | None, int]:
    """Measure both by turns, started side by side; the median of the pairs of which neither is marked."""
    began, ratios = time.monotonic(), list[float]()
    async with AsyncExitStack() as exits:
        stage = exits.enter_context(Stage(folder))
        targets = []
        for name in ("toolchat", LIMIT):
            service = SERVICES[name]
            path = service.path.format(tool="time")
            opened = stage.started(name, service.command, service.environment, path)
            target, _ = await exits.enter_async_context(opened)
            await ask(target.ports, question(path), connections=32, seconds=_SECONDS)
            targets.append((target, Measurement("time-32", question(path), 2, 32, seconds=_SECONDS)))
        while len(ratios) < _PAIRS and time.monotonic() - began < _DEADLINE:
            mine, limit = [_right(await stage.measured(target, what, attempts=1)) for target, what in targets]
            if not mine.marks and not limit.marks:
                ratios.append(mine.values["cpu_ms"] / limit.values["cpu_ms"])
    return (median(ratios) if ratios else None), len(ratios)


def _right(sample: Sample) -> Sample:
    if sample.values["faults"]:
        raise BenchError(f"{sample.subject}: {'; '.join(sample.marks)}")
    return sample
