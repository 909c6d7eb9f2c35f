"""The command line: ``python -m tests.faults``."""

import argparse
import secrets
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import uvloop

from tests.faults.fault import Fault
from tests.faults.run import Row, load, run
from tests.faults.sabotage import naming, sabotage

__all__ = ["main"]

_FAST, _USUAL, _LONG = 0.12, 1.5, 45.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the lab.

    Returns:
        0; 1 when a row does not hold that is not known not to; 2 when nothing is called as asked.
    """
    chosen = _parser().parse_args(arguments)
    if chosen.sabotage:
        return _sabotage(chosen.names)
    faults = _chosen(chosen)
    if chosen.list or not faults:
        return _list(faults)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that what was started is stopped, too
    minutes = chosen.minutes or (_FAST if chosen.fast else _LONG if chosen.long else _USUAL)
    seed = chosen.seed if chosen.seed is not None else secrets.randbelow(2**31)
    print(f"lab: {len(faults)} rows, --seed {seed} --minutes {minutes:g}", flush=True)
    with tempfile.TemporaryDirectory(prefix="toolchat-lab-") as folder:
        try:
            rows = uvloop.run(run(faults, Path(folder), seed, minutes))
        except KeyboardInterrupt:
            return 130
    return _report(rows)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description="What faults do to the service.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="rows or families; none: all of them")
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--fast", action="store_true", help="the half that every change has to pass")
    kinds.add_argument("--long", action="store_true", help="an hour, of which chaos has the most")
    kinds.add_argument("--sabotage", action="store_true", help="take mechanisms out: do the rows notice that?")
    parser.add_argument("--minutes", type=float, help="how long chaos lasts")
    parser.add_argument("--seed", type=int, help="repeats what a run drew by lot")
    parser.add_argument("--list", action="store_true", help="show the rows and run none")
    parser.add_argument("--no-peers", action="store_true", help="leave out the rows that need the peers' environment")
    return parser


def _chosen(chosen: argparse.Namespace) -> list[Fault]:
    faults = list(load().values())
    if chosen.names:
        return [each for each in faults if each.name in chosen.names or each.family in chosen.names]
    if chosen.fast:
        return [each for each in faults if each.fast]
    return [each for each in faults if not (each.peer and chosen.no_peers)]


def _list(faults: Sequence[Fault]) -> int:
    for each in faults:
        print(f"{each.family}/{each.name}{' (fast)' if each.fast else ''}: {each.done}")
    if not faults:
        print("lab: no row or family is called so; --list shows them", file=sys.stderr)
    return 0 if faults else 2


def _report(rows: Sequence[Row]) -> int:
    failing = [row for row in rows if not row.held and not row.known]
    print(f"lab: {sum(row.held for row in rows)} of {len(rows)} rows hold, {sum(row.seconds for row in rows):.0f} s")
    for row in failing:
        print(f"lab: FAILS: {row.name}: {row.why}", file=sys.stderr)
    return 1 if failing else 0


def _sabotage(names: Sequence[str]) -> int:
    try:
        outcomes = sabotage(naming(names))
    except RuntimeError as error:
        print(f"lab: {error}", file=sys.stderr)
        return 1
    noticed = sum(each.is_noticed for each in outcomes)
    print(f"lab: {noticed} of {len(outcomes)} mechanisms are noticed when they are missing")
    return 0 if outcomes and noticed == len(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
