"""``docs/faults.md``: the table of what was measured."""

import itertools
from collections.abc import Sequence

from lab.run import Row
from lab.service import ROOT

__all__ = ["PAGE", "page"]

PAGE = ROOT / "docs" / "faults.md"

_HEAD = """\
# Faults

Results of {count} fault-injection tests by family, of which {held} hold. Everything is real: processes of
`python -m app serve`, sockets, a Redis that is stopped and killed, a browser. The [lab](../lab/README.md) measured each
row on a machine with {cores} cores ({days}) and wrote this page; a row that was not measured is not listed, and a row
that fails says so. After each row the lab also checks that the service still answers and has logged neither an error
nor a traceback.

`make lab` measures all of it again in about ten minutes, `make lab-long` for an hour, `python -m lab NAME` one row.
"""
_COLUMNS = ("fault", "what users see", "measured", "bound", "holds", "again")


def page(rows: Sequence[Row]) -> str:
    """The whole page."""
    days = sorted({row.on for row in rows})
    head = _HEAD.format(
        count=len(rows),
        held="all" if all(row.held for row in rows) else str(sum(row.held for row in rows)),
        cores=max(row.cores for row in rows),
        days=days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}",
    )
    parts = [head]
    for family, members in itertools.groupby(rows, key=lambda row: row.family):
        parts.append(f"\n## {family.replace('_', ' ').capitalize()}\n\n{_table(list(members))}")
    return "".join(parts)


def _table(rows: Sequence[Row]) -> str:
    lines = [_row(_COLUMNS), _row(["---"] * len(_COLUMNS))]
    lines += [_row([row.done, row.users, _measured(row), row.bound, _holds(row), f"`{row.name}`"]) for row in rows]
    return "\n".join(lines) + "\n"


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def _measured(row: Row) -> str:
    if row.measured is None:
        return f"no figure ({row.figure})"
    figure = (
        f"{row.measured:,.0f}"
        if abs(row.measured) >= 1000 or row.measured == int(row.measured)
        else f"{row.measured:.3g}"
    )
    return f"{figure} {row.figure}" + (f"; {row.why}" if row.held and row.why else "")


def _holds(row: Row) -> str:
    if row.held:
        return "yes"
    return f"**no**: {row.known or row.why}"
