"""A service that the tests of a module share, each as a tenant of its own where it sets alarms."""

import secrets
from collections.abc import AsyncGenerator

import httpx
import pytest

from tests.serving import service


@pytest.fixture(scope="module")
async def offline() -> AsyncGenerator[httpx.AsyncClient, None]:
    """A service without any key."""
    async with service() as client:
        yield client


@pytest.fixture
def tenant() -> dict[str, str]:
    """The header of a new tenant: alarms and idempotency keys are its own."""
    return {"X-Tenant-ID": f"t-{secrets.token_hex(8)}"}
