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

What you can rely on while processes, Redis and upstreams fail, and the tests that prove it. The tests run real
processes of `python -m app serve`, with real sockets, a Redis that is stopped and killed, and a browser.

## The promise

- **Every failure is answered** in bounded time, with a documented status and [code](errors.md). A stream that fails
  after its first byte ends with an `error` event, never with `done`.
- **An acknowledged turn is stored.** A turn that fails leaves the conversation unchanged.
- **The turns of a session run one after another**, on any number of replicas. If a replica stalls for too long, its
  answer is not stored.
- **A call that must run once runs at most once**: a request with an `Idempotency-Key`, or an approved tool call. If the
  process dies meanwhile, the call is not repeated, because it may have taken effect.
- **One client cannot use up the service**: concurrent questions, sessions, translations and bodies have limits per
  client and in total.
- **Nothing is left behind**: if a client disconnects, its request to the provider is cancelled, and its memory and
  files are released.

[Operations](operations.md#state) describes what is lost when a process, a machine or
[Redis](operations.md#redis-data-loss-by-failure) fails.

## Random failures

Three replicas, one of them with workers, and Redis are killed, stopped, stalled and cut off at random while clients
share sessions, approve calls, repeat requests with idempotency keys, and set and delete alarms. Then the test
[checks everything that was acknowledged](../lab/README.md#how-chaos-runs-are-verified).

{chaos}
## Can the tests fail?

Each mechanism is removed from a copy of the code, one at a time; then the tests that claim to prove it must fail. They
did for {noticed} of {mechanisms} mechanisms ({sabotage_days}):

{sabotage}
## Results

{held} of {count} [tests](faults-rows.md) pass ({cores} cores, {days}). `make lab` runs all of them in about ten
minutes, `make lab-long` for an hour, `make lab-sabotage` without each mechanism, and `python -m lab NAME` a single one.
"""
_ROWS = """\
# Faults: all tests

Results of {count} fault-injection tests; [faults](faults.md) is the summary. After each test the
[lab](../lab/README.md) also checks that the service still answers, and has logged neither an error nor a traceback.
"""
_COLUMNS = ("fault", "what users see", "measured", "bound", "passes", "name")


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
        sabotage=_table(("mechanism removed", "tests that fail"), sabotage),
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
