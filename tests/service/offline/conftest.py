"""The service with the offline model, for the tests that ask it as a client does."""

from collections.abc import AsyncGenerator

import httpx
import pytest
import uvicorn

from tests.application import create_sandbox
from tests.serving import running, service


@pytest.fixture(scope="package")
async def toolchat() -> AsyncGenerator[httpx.AsyncClient, None]:
    """A client of one service for all tests here, whose upstreams the sandbox plays; no test changes it."""
    sandbox = uvicorn.Server(uvicorn.Config(create_sandbox(), log_config=None, lifespan="off"))
    async with running(sandbox) as url, service(CHAT_PROVIDER="offline", SANDBOX_URL=url) as client:
        yield client
