"""``docs/faults.md`` and ``docs/faults-rows.md``, generated from the results."""

import itertools
from collections.abc import Sequence

from lab.run import Row
from lab.sabotage import Outcome
from lab.service import ROOT

__all__ = ["PAGE", "ROWS_PAGE", "page", "rows_page", "write_pages"]

PAGE = ROOT / "docs" / "faults.md"
ROWS_PAGE = ROOT / "docs" / "faults-rows.md"

_PAGE = """\
# Faults

What users can rely on while processes, Redis and upstreams fail, and how it is tested. Everything in the tests is real:
processes of `python -m app serve`, sockets, a Redis that is stopped and killed, a browser.

## The promise

- **Every failure is answered** in bounded time, with a documented status and [code](errors.md). A stream that has
  begun ends with an `error` event, never with a `done` that is not true.
- **An acknowledged turn is stored**, and no other: one that fails leaves the conversation unchanged.
- **The turns of a session follow each other**, on any number of replicas. The answer of a replica that stalled for too
  long is refused.
- **What must run once runs once**: a request with an `Idempotency-Key`, and an approved tool call. If a process dies
  meanwhile, the request is not repeated, since its effect is unknown.
- **One client cannot take everything**: slots, sessions, translations and bodies have limits per client and in total.
- **Nothing stays behind**: a client that leaves ends its request at the provider, too; memory and files are given back.

## What is lost when

| failure | loss |
| --- | --- |
| a process of the service dies | its running requests; with `memory://` all that it stored |
| the machine dies, with the state in a file | up to the last second, unless `?synchronous=full` is set |
| Redis is unavailable | nothing; requests with a session get 503 `store-unavailable`, others are answered |
| Redis crashes, with `appendfsync always` | nothing that was acknowledged |
| Redis crashes, with less | up to two seconds, or all since the last snapshot |

[Operations](operations.md#state) has the settings, and [figures of Redis](operations.md#redis-data-loss-by-failure).

## Chaos

Three replicas, one of them with workers, and Redis are killed, stopped, stalled and cut off at random while clients
share sessions, approve calls, repeat requests with idempotency keys, and set and delete alarms. Then everything that
was acknowledged is [looked for](../lab/README.md#how-chaos-runs-are-verified).

{chaos}
## Can the tests fail?

{noticed} of {mechanisms} mechanisms, taken out of a copy of the code one at a time, are noticed by the rows that claim
them ({sabotage_days}):

{sabotage}
## Results

{held} of {count} [rows](faults-rows.md) hold ({cores} cores, {days}). `make lab` measures all of them in about ten
minutes, `make lab-long` for an hour; `make lab-sabotage` takes the mechanisms out. `python -m lab NAME` runs one row.
"""
_ROWS = """\
# Faults: all rows

Results of {count} fault-injection tests by family; [faults](faults.md) is the summary. A row that was not measured is
not listed, and a row that fails says so. After each row the [lab](../lab/README.md) also checks that the service still
answers and has logged neither an error nor a traceback.
"""
_COLUMNS = ("fault", "what users see", "measured", "bound", "holds", "again")


def write_pages(rows: Sequence[Row], outcomes: Sequence[Outcome]) -> None:
    """Write both pages."""
    PAGE.write_text(page(rows, outcomes), encoding="utf-8")
    ROWS_PAGE.write_text(rows_page(rows), encoding="utf-8")


def page(rows: Sequence[Row], outcomes: Sequence[Outcome]) -> str:
    """The summary."""
    chaos = [[row.done, _measured(row), row.bound] for row in rows if row.family == "chaos"]
    sabotage = [[each.mechanism, "; ".join(f"`{name}`" for name in each.noticed) or "**none**"] for each in outcomes]
    return _PAGE.format(
        chaos=_table(("checked", "measured", "bound"), chaos),
        noticed=sum(each.is_noticed for each in outcomes),
        mechanisms=len(outcomes),
        sabotage_days=_days({each.on for each in outcomes}),
        sabotage=_table(("without", "fails"), sabotage),
        held=sum(row.held for row in rows),
        count=len(rows),
        cores=max(row.cores for row in rows),
        days=_days({row.on for row in rows}),
    )


def rows_page(rows: Sequence[Row]) -> str:
    """The table of all rows."""
    parts = [_ROWS.format(count=len(rows))]
    for family, members in itertools.groupby(rows, key=lambda row: row.family):
        cells = [[row.done, row.users, _measured(row), row.bound, _holds(row), f"`{row.name}`"] for row in members]
        parts.append(f"\n## {family.replace('_', ' ').capitalize()}\n\n{_table(_COLUMNS, cells)}")
    return "".join(parts)


def _days(days: set[str]) -> str:
    return " to ".join(sorted({min(days), max(days)})) if days else "not measured"


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "".join(f"{_row(cells)}\n" for cells in (columns, ["---"] * len(columns), *rows))


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
