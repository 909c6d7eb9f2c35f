"""Metrics of several processes are reported as sums."""

import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from prometheus_client import generate_latest

from tests.command_line import ROOT
from tests.service.observability.reading import Figures, parsed
from toolchat.service.observability.multiprocess import forget_worker, metrics_directory, registry

WORKER = """
from toolchat.service.observability import metrics
metrics.IN_FLIGHT.set(2)
metrics.labelled(metrics.REQUESTS, "/chat", "ok").inc()
print("ready", flush=True)
input()
"""


@contextmanager
def worker() -> Generator[int, None, None]:
    """A process that has served a request and serves two more; gives its id."""
    command = [sys.executable, "-c", WORKER]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield process.pid
        process.kill()


def reported() -> Figures:
    return parsed(generate_latest(registry()).decode())


def test_counters_are_summed_over_all_workers_and_gauges_over_those_that_live() -> None:
    name, labels = "toolchat_requests_total", (("outcome", "ok"), ("route", "/chat"))
    with metrics_directory(), worker():
        folder = Path(os.environ["PROMETHEUS_MULTIPROC_DIR"])
        with worker() as ended:
            both = reported()
            assert (both["toolchat_questions_in_flight", ()], both[name, labels]) == (4, 2)
        forget_worker(ended)
        assert (reported()["toolchat_questions_in_flight", ()], reported()[name, labels]) == (2, 2)
    assert not folder.exists()
    assert "PROMETHEUS_MULTIPROC_DIR" not in os.environ
