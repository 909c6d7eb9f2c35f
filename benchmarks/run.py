"""A whole run: what was measured, where, with which versions."""

import os
import platform
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import psutil

from benchmarks import java
from benchmarks.catalogue import PEERS_PYTHON, SERVICES
from benchmarks.growth import measure_growth
from benchmarks.measure import Plan, visit
from benchmarks.ratios import measure_ratios
from benchmarks.stage import BenchError, Sample, Stage
from toolchat import __version__

__all__ = ["Run", "run_all"]


_OFTEN = ("toolchat", "limit")
"""Kinds that take part in every round."""
_GROWTH_SECONDS = 1.0
"""Length of a measurement of a curve's point."""
_SHARED = ("aiohttp", "fastapi", "uvicorn", "uvloop")


@dataclass(frozen=True, slots=True)
class Run:
    """One run."""

    date: str
    machine: str
    versions: Mapping[str, str]
    rounds: int
    services: Sequence[str]
    missing: Sequence[str]
    """What could not be measured, a line each."""
    samples: Sequence[Sample]


async def run_all(names: Sequence[str], plan: Plan, folder: Path, growth_rounds: int) -> Run:
    """Measure services in interleaved rounds, then what is compared by turns, then the curves.

    Args:
        names: the services.
        plan: how much.
        folder: where logs go.
        growth_rounds: how often each curve is measured.
    """
    missing = {name: SERVICES[name].missing() or _built(name, folder) for name in names}
    able = [name for name in names if not missing[name]]
    with Stage(folder) as stage:
        rounds = await _rounds(stage, able, plan, missing)
        lost = await measure_ratios(stage, able, plan) if plan.pairs else []
        for _ in range(growth_rounds):
            lost += await measure_growth(stage, _GROWTH_SECONDS, plan.attempts)
        return Run(
            date=datetime.now(UTC).date().isoformat(),
            machine=_machine(),
            versions=_versions(able),
            rounds=rounds,
            services=able,
            missing=[f"{name}: {why}" for name, why in missing.items() if why] + list(dict.fromkeys(lost)),
            samples=stage.samples,
        )


async def _rounds(stage: Stage, names: Sequence[str], plan: Plan, missing: dict[str, str]) -> int:
    """Visit the services in rounds, each the other way about; gives how many rounds there was time for."""
    began, took = time.monotonic(), dict[str, float]()
    for number in range(plan.rounds):
        taking_part = [name for name in names if number < plan.peer_rounds or SERVICES[name].kind in _OFTEN]
        if time.monotonic() - began + sum(took.get(name, 0) for name in taking_part) > plan.seconds:
            return number
        for name in taking_part if number % 2 == 0 else reversed(taking_part):
            started = time.monotonic()
            try:
                await visit(stage, SERVICES[name], plan)
            except (BenchError, OSError) as error:
                missing[name] = str(error)
            took[name] = time.monotonic() - started
    return plan.rounds


def _built(name: str, folder: Path) -> str:
    return java.build(folder / "maven.log") if SERVICES[name].kind == "spring" else ""


def _machine() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())
    memory = psutil.virtual_memory().total / 2**30
    return f"{os.cpu_count()} cores of {model}, {memory:.0f} GiB, Linux"


def _versions(names: Sequence[str]) -> dict[str, str]:
    versions = {"Python": platform.python_version(), "toolchat": __version__}
    versions |= {name: version(name) for name in _SHARED}
    peers = [SERVICES[name] for name in names if SERVICES[name].kind == "framework"]
    packages = [each.package for each in peers]
    if packages:
        script = "import importlib.metadata as m, sys; print(*map(m.version, sys.argv[1:]))"
        found = subprocess.run([PEERS_PYTHON, "-c", script, *packages], capture_output=True, text=True, check=True)
        versions |= dict(zip(packages, found.stdout.split(), strict=True))
    versions |= java.versions() if any(SERVICES[name].kind == "spring" for name in names) else {}
    return versions
