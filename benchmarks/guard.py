"""Fails when the instructions of a question, divided by the limit's, have grown."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic_core import from_json, to_json

from benchmarks.catalogue import LIMIT, SERVICES
from benchmarks.instructions import count_instructions
from benchmarks.load import question
from benchmarks.stage import Stage
from benchmarks.variants import PLAIN, Variant, plain

__all__ = ["guard", "is_worse", "record"]


_BASELINE = Path(__file__).parent / "baseline.json"
_TOLERANCE = 1.04
"""Counts are steady within 0.5 %, on a busy machine as well."""


def is_worse(ratio: float) -> bool:
    """Whether a ratio is beyond what is tolerated of the recorded one."""
    return ratio > _TOLERANCE * _recorded()


async def guard(folder: Path) -> bool:
    """Count, and compare with ``baseline.json``.

    Returns:
        Whether the ratio is still good.

    Raises:
        BenchError: valgrind is not there, an answer was wrong, or an upstream call was missing.
    """
    ratio = await _measured(folder)
    verdict = "worse than" if is_worse(ratio) else "within"
    print(f"guard: {ratio:.3f} times the limit, recorded are {_recorded():.3f}: {verdict} {_TOLERANCE} times that")
    return not is_worse(ratio)


async def record(folder: Path) -> None:
    """Count, and write ``baseline.json``; raises what ``guard`` does."""
    ratio = await _measured(folder)
    content = {"instructions": round(ratio, 3), "date": datetime.now(UTC).date().isoformat()}
    _BASELINE.write_bytes(to_json(content, indent=1) + b"\n")
    print(f"guard: recorded {ratio:.3f}")


async def _measured(folder: Path) -> float:
    with Stage(folder) as stage:
        limit = Variant(LIMIT, question(PLAIN), {}, SERVICES[LIMIT])
        return await count_instructions(stage, plain()) / await count_instructions(stage, limit)


def _recorded() -> float:
    baseline: dict[str, Any] = from_json(_BASELINE.read_bytes())
    return float(baseline["instructions"])
