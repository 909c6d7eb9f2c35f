"""The tests of a mechanism fail when it is missing."""

import os
import subprocess
import sys

import pytest

from tests.faults.removal import MECHANISMS
from tests.faults.service import ROOT, WITHOUT

_TESTS = {
    "lock": "test_replicas.py::test_one_session_by_many_at_once",
    "fence": "test_replicas.py::test_a_replica_stopped_beyond_its_lock",
    "renewal": "test_replicas.py::test_a_turn_longer_than_its_lock",
    "late-release": "test_store.py::test_a_session_after_a_stall",
    "store-deadline": "test_store.py::test_redis_stopped",
    "stored-result": "test_once.py::test_one_key_fifty_times",
    "header-time": "test_load.py::test_half_sent_headers",
}


@pytest.mark.nightly
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_missing_mechanism_is_noticed(mechanism: str) -> None:
    command = [sys.executable, "-m", "pytest", "-q", f"tests/faults/{_TESTS[mechanism]}"]
    run = subprocess.run(command, cwd=ROOT, env=os.environ | {WITHOUT: mechanism}, capture_output=True, text=True)
    assert "1 failed" in run.stdout, run.stdout + run.stderr
    assert "did not start" not in run.stdout, run.stdout
