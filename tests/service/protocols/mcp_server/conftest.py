"""A service with the tools of the workshop, shared by the tests of a module."""

from collections.abc import AsyncGenerator

import httpx
import pytest

from tests.service.protocols.mcp_server.host import FOLDERS, LEGACY, Host
from tests.serving import service


@pytest.fixture(scope="module")
async def client() -> AsyncGenerator[httpx.AsyncClient, None]:
    """A client of the service."""
    async with service(FOLDERS, CHAT_PROVIDER="offline") as client:
        yield client


@pytest.fixture
def modern(client: httpx.AsyncClient) -> Host:
    """A host that speaks the newest revision."""
    return Host(client)


@pytest.fixture(params=LEGACY)
def legacy(client: httpx.AsyncClient, request: pytest.FixtureRequest) -> Host:
    """A host that speaks a revision with a handshake."""
    return Host(client, request.param)
