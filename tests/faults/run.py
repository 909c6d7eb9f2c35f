"""Running rows."""

import asyncio
import importlib
import itertools
import pkgutil
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.faults import families
from tests.faults.fault import FAULTS, Fault, NotHeld
from tests.faults.stage import Stage
from tests.faults.upstream import Upstream

__all__ = ["Row", "load", "run"]


@dataclass(frozen=True)
class Row:
    """What was measured for one fault, in the words that the fault had then."""

    family: str
    name: str
    done: str
    users: str
    figure: str
    bound: str
    measured: float | None
    """``None`` when it did not come to a figure."""
    held: bool
    why: str
    """Why it did not hold, or what the row has to say beside its figure."""
    known: str
    seconds: float


def load() -> dict[str, Fault]:
    """All faults, by their names, family by family."""
    for module in pkgutil.iter_modules(families.__path__):
        importlib.import_module(f"{families.__name__}.{module.name}")
    return FAULTS


async def run(chosen: Iterable[Fault], folder: Path, seed: int, minutes: float) -> list[Row]:
    """Run faults one after the other, and print each as it ends."""
    rows: list[Row] = []
    by_family = itertools.groupby(sorted(chosen, key=lambda each: each.family), key=lambda each: each.family)
    for family, faults in by_family:
        async with Upstream() as upstream, Stage(folder / family, seed, minutes, upstream) as stage:
            for fault in faults:
                rows.append(await _measured(fault, stage))
                print(_line(rows[-1]), flush=True)
    return rows


async def _measured(fault: Fault, stage: Stage) -> Row:
    began = time.monotonic()
    measured, why = await _attempt(fault, stage)
    if not why and measured is not None and not fault.bound.holds(measured):
        why = "beyond its bound"
    held = not why
    why = "; ".join(each for each in (why, stage.note) if each)
    return Row(
        fault.family, fault.name, fault.done, fault.users, fault.figure, str(fault.bound), measured, held, why,
        fault.known, round(time.monotonic() - began, 2),
    )  # fmt: skip


async def _attempt(fault: Fault, stage: Stage) -> tuple[float | None, str]:
    """The figure, and why it does not hold; a row that breaks must not take the others with it."""
    measured, why = None, ""
    stage.note = ""
    try:
        async with asyncio.timeout(max(fault.limit, fault.limit * stage.minutes / 1.5 if fault.lasts else 0)):
            measured = await fault.measure(stage)
    except NotHeld as error:
        why = str(error)
    except TimeoutError:
        why = f"came to no end ({fault.limit:g} s)"
    except Exception as error:  # noqa: BLE001 - also what the lab itself does wrong is a row that does not hold
        why = f"{type(error).__name__}: {error}"
    try:
        await stage.aftermath(loud=fault.loud)
    except Exception as error:  # noqa: BLE001 - likewise
        why = why or (str(error) if isinstance(error, NotHeld) else f"{type(error).__name__}: {error}")
    return measured, why


def _line(row: Row) -> str:
    verdict = "holds" if row.held else "KNOWN" if row.known else "FAILS"
    measured = "no figure" if row.measured is None else f"{row.measured:.4g}"
    said = f": {row.why}" if row.why else ""
    return f"{verdict} {row.family}/{row.name}: {measured} {row.figure} ({row.bound}) in {row.seconds:.1f} s{said}"
