"""A slice of the benchmark that fails when toolchat's distance to the limit has grown."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from pydantic_core import from_json, to_json

from benchmarks.catalogue import LIMIT, SERVICES
from benchmarks.instructions import can_count, count_instructions
from benchmarks.load import question
from benchmarks.pairs import measure_pairs
from benchmarks.stage import BenchError, Stage
from benchmarks.variants import PLAIN, Variant, plain

__all__ = ["INSTRUCTIONS", "PAIRS", "Kind", "guard", "record"]

_BASELINE = Path(__file__).parent / "baseline.json"
_PAIRS = 7
_ENOUGH = 4
"""Fewer pairs than these prove nothing: on a busy machine a single one lies anywhere from 1.3 to 1.9."""
_DEADLINE = 28


@dataclass(frozen=True, slots=True)
class Kind:
    """A way to compare toolchat with the limit; each has a baseline of its own."""

    name: str
    """What is compared, and the key of its ratio in ``baseline.json``."""
    tolerance: float
    """How many times the recorded ratio is still good."""
    measure: Callable[[Stage], Awaitable[float | None]]
    """Gives toolchat's cost divided by the limit's; ``None`` if too little could be measured."""

    def is_worse(self, ratio: float, recorded: float) -> bool:
        """Whether a ratio is beyond what is tolerated."""
        return ratio > self.tolerance * recorded


async def guard(folder: Path) -> bool:
    """Measure and compare with ``baseline.json``; prints what it saw.

    Returns:
        Whether the ratio is still good; also ``True`` when too few pairs could be counted, which is printed.

    Raises:
        BenchError: an answer was wrong, an upstream call was missing, or there is nothing to compare with.
    """
    kind, ratio = await _measured(folder)
    recorded = _baseline().get(kind.name)
    if recorded is None:
        raise BenchError(f"{_BASELINE.name} has no {kind.name}: python -m benchmarks --record")
    if ratio is None:
        print(f"bench-guard: NOT MEASURED, since others took the cores (fewer than {_ENOUGH} {kind.name} counted)")
        return True
    worse = kind.is_worse(ratio, recorded)
    print(
        f"bench-guard: toolchat costs {ratio:.3f} times the limit ({kind.name}), recorded are {recorded:.3f}: "
        f"{'worse than' if worse else 'within'} {kind.tolerance} times that"
    )
    return not worse


async def record(folder: Path) -> None:
    """Measure and write ``baseline.json``.

    Raises:
        BenchError: an answer was wrong, or nothing could be counted.
    """
    kind, ratio = await _measured(folder)
    if ratio is None:
        raise BenchError("too few pairs could be counted: others took the cores")
    content = _baseline() | {kind.name: round(ratio, 3), f"{kind.name}_date": datetime.now(UTC).date().isoformat()}
    _BASELINE.write_bytes(to_json(content, indent=1) + b"\n")
    print(f"bench-guard: recorded {ratio:.3f} ({kind.name})")


async def _measured(folder: Path) -> tuple[Kind, float | None]:
    kind = INSTRUCTIONS if can_count() else PAIRS
    with Stage(folder) as stage:
        return kind, await kind.measure(stage)


def _baseline() -> dict[str, Any]:
    baseline: dict[str, Any] = from_json(_BASELINE.read_bytes()) if _BASELINE.exists() else {}
    return baseline


async def _instructions(stage: Stage) -> float:
    limit = Variant(LIMIT, question(PLAIN), {}, SERVICES[LIMIT])
    return await count_instructions(stage, plain()) / await count_instructions(stage, limit)


async def _pairs(stage: Stage) -> float | None:
    """The median of the pairs of which neither is marked."""
    pairs = await measure_pairs(stage, "toolchat", "time", _PAIRS, _DEADLINE)
    if wrong := [each for each in pairs if each.values["faults"]]:
        raise BenchError(f"toolchat or the limit: {'; '.join(wrong[0].marks)}")
    counted = [each.values["ratio"] for each in pairs if not each.marks]
    return median(counted) if len(counted) >= _ENOUGH else None


INSTRUCTIONS = Kind("instructions", 1.04, _instructions)
"""Steady within 0.5 %, on a busy machine as well."""
PAIRS = Kind("pairs", 1.3, _pairs)
"""CPU time of both by turns."""
