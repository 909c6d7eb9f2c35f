"""Programs that a machine may lack: a test that needs one is skipped where it is missing, and the reason names it.

All skips for a program come from one line, so that pytest counts them together at the end of a run.
"""

import os
import shutil
import sys
from pathlib import Path

import pytest

REDIS = ("redis-server", "valkey-server")
INITDB, POSTGRES = "initdb", "postgres"
CHROMIUM = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""The headless shell comes first: it starts no windows of its own, and needs half the processor time."""

_PACKAGES = {
    "go": "golang-go",
    "initdb": "postgresql",
    "kubectl": "kubernetes-client (of Debian 13)",
    "postgres": "postgresql",
    "promtool": "prometheus",
    "systemd-analyze": "systemd",
}
"""Debian's package of a program that is not called like it."""


def find(*names: str) -> str | None:
    """Path of the first of these programs that is installed."""
    path = os.environ.get("PATH", os.defpath)
    path += ":" + path.replace("/bin", "/sbin")  # servers are there, and only root looks there
    path = ":".join([path, *map(str, Path("/usr/lib/postgresql").glob("*/bin"))])  # Debian has several versions
    return next((found for name in names if (found := shutil.which(name, path=path))), None)


def require(*names: str) -> str:
    """Path of the first of these programs that is installed; skips the running test if none is."""
    found = find(*names)
    if found is None:
        pytest.skip(f"needs {names[0]}: apt-get install {_PACKAGES.get(names[0], names[0])}")
    return found


def require_linux() -> None:
    """Skip the running test on other systems."""
    if sys.platform != "linux":
        pytest.skip("needs Linux")
