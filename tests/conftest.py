"""Fixtures that every test shares."""

import pytest


@pytest.fixture(scope="session")
def anyio_backend() -> tuple[str, dict[str, bool]]:
    """Run asynchronous tests on asyncio, with the loop that the service uses."""
    return "asyncio", {"use_uvloop": True}
