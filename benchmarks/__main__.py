"""The command line: ``python -m benchmarks``."""

import argparse
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import uvloop

from benchmarks.catalogue import LIMIT, SERVICES
from benchmarks.guard import guard, record
from benchmarks.measure import Plan
from benchmarks.processes import ROOT
from benchmarks.report import compared, markdown
from benchmarks.run import Run, run_all
from benchmarks.stage import BenchError

__all__ = ["main"]


_SHORT = Plan(rounds=2, peer_rounds=1, pairs=5, attempts=2)
_SMOKE = Plan(
    rounds=1,
    cold=0,
    settles=False,
    attempts=1,
    pairs=0,
    busy_seconds=0.2,
    single_seconds=0.1,
    burst=20,
    burst_pace=(0.1, 0),
    streams=10,
    first_texts=1,
    stream_pace=(0.05, 0.01),
    warm_up=100,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark.

    Returns:
        0; 1 when something could not be measured, an answer was wrong, or the guard found a regression.
    """
    chosen = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that what was started is stopped, too
    with tempfile.TemporaryDirectory(prefix="toolchat-bench-") as folder:
        try:
            return _run(chosen, Path(folder))
        except BenchError as error:
            print(f"bench: {error}", file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="What a question costs, side by side.")
    parser.add_argument("--only", help=f"services, separated by commas, of: {', '.join(SERVICES)}")
    parser.add_argument(
        "--write", action="store_true", help="write the tables to benchmarks/results.md and docs/comparison.md"
    )
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--short", action="store_true", help="every service, but frameworks and Spring AI only once")
    kinds.add_argument("--smoke", action="store_true", help="a few questions; fails when one is answered wrongly")
    kinds.add_argument("--guard", action="store_true", help="compare toolchat's ratio to the limit with baseline.json")
    kinds.add_argument("--record", action="store_true", help="write baseline.json")
    return parser


def _run(chosen: argparse.Namespace, folder: Path) -> int:
    if chosen.guard:
        return 0 if uvloop.run(guard(folder)) else 1
    if chosen.record:
        uvloop.run(record(folder))
    else:
        return _measure(chosen, folder)
    return 0


def _measure(chosen: argparse.Namespace, folder: Path) -> int:
    plan = _SMOKE if chosen.smoke else _SHORT if chosen.short else Plan()
    growth = 0 if chosen.smoke else 1 if chosen.short else 3
    run = uvloop.run(run_all(_services(chosen), plan, folder, growth))
    if chosen.smoke:
        print(*(f"Not measured: {line}" for line in run.missing), sep="\n", file=sys.stderr)
        wrong = [each for each in run.samples if each.values.get("faults")]
        return 1 if wrong or run.missing else 0
    print(markdown(run))
    if chosen.write:
        _write(run)
    return 0


def _services(chosen: argparse.Namespace) -> list[str]:
    names = ("toolchat", LIMIT) if chosen.smoke else tuple(SERVICES)
    only = chosen.only.split(",") if chosen.only else names
    if unknown := [name for name in only if name not in SERVICES]:
        raise BenchError(f"no such service: {', '.join(unknown)}")
    return list(only)


def _write(run: Run) -> None:
    (ROOT / "benchmarks" / "results.md").write_text(markdown(run))
    comparison = ROOT / "docs" / "comparison.md"
    comparison.write_text(compared(comparison.read_text(), run))


if __name__ == "__main__":
    sys.exit(main())
