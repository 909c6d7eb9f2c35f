"""A slice of the benchmark that fails when toolchat's distance to the limit has grown."""

from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from pydantic_core import from_json, to_json

from bench.pairs import measure_pairs
from bench.stage import BenchError, Stage

__all__ = ["TOLERANCE", "guard", "is_worse", "record"]

TOLERANCE = 1.3
"""How many times the recorded ratio is still good."""

_BASELINE = Path(__file__).parent / "baseline.json"
_PAIRS = 7
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
    """The median of the pairs of which neither is marked, and how many these are."""
    with Stage(folder) as stage:
        pairs = await measure_pairs(stage, "toolchat", "time", _PAIRS, _DEADLINE)
    if wrong := [each for each in pairs if each.values["faults"]]:
        raise BenchError(f"toolchat or the limit: {'; '.join(wrong[0].marks)}")
    ratios = [each.values["ratio"] for each in pairs if not each.marks]
    return (median(ratios) if ratios else None), len(ratios)
