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
_ENOUGH = 4
"""Fewer pairs than these prove nothing: on a busy machine a single one lies anywhere from 1.3 to 1.9."""
_DEADLINE = 28


async def guard(folder: Path) -> bool:
    """Measure and compare with ``baseline.json``; prints what it saw.

    Returns:
        Whether the ratio is still good; also ``True`` when too few pairs could be counted, which is printed.

    Raises:
        BenchError: an answer was wrong, an upstream call was missing, or there is nothing to compare with.
    """
    if not _BASELINE.exists():
        raise BenchError(f"{_BASELINE.name} is not there: python -m bench --record")
    recorded = float(from_json(_BASELINE.read_bytes())["ratio"])
    ratios = await _ratios(folder)
    if len(ratios) < _ENOUGH:
        print(
            f"bench-guard: NOT MEASURED, since others took the cores ({len(ratios)} pairs counted); nothing is proved"
        )
        return True
    worse = is_worse(median(ratios), recorded)
    print(
        f"bench-guard: toolchat costs {median(ratios):.2f} times the limit ({len(ratios)} pairs counted), recorded are "
        f"{recorded:.2f}: {'worse than' if worse else 'within'} {TOLERANCE} times that"
    )
    return not worse


async def record(folder: Path) -> None:
    """Measure and write ``baseline.json``.

    Raises:
        BenchError: an answer was wrong, or nothing could be counted.
    """
    ratios = await _ratios(folder)
    if len(ratios) < _ENOUGH:
        raise BenchError(f"only {len(ratios)} pairs could be counted: others took the cores")
    ratio, today = median(ratios), datetime.now(UTC).date()
    content = {"ratio": round(ratio, 3), "pairs": len(ratios), "date": today.isoformat()}
    _BASELINE.write_bytes(to_json(content, indent=1) + b"\n")
    print(f"bench-guard: recorded {ratio:.2f}")


def is_worse(ratio: float, recorded: float) -> bool:
    """Whether a ratio is beyond what is tolerated."""
    return ratio > TOLERANCE * recorded


async def _ratios(folder: Path) -> list[float]:
    """The ratios of the pairs of which neither is marked."""
    with Stage(folder) as stage:
        pairs = await measure_pairs(stage, "toolchat", "time", _PAIRS, _DEADLINE)
    if wrong := [each for each in pairs if each.values["faults"]]:
        raise BenchError(f"toolchat or the limit: {'; '.join(wrong[0].marks)}")
    return [each.values["ratio"] for each in pairs if not each.marks]
