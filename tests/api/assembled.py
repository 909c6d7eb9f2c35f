"""The application with something of one's own put in, on a real socket."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import httpx
from fastapi import FastAPI

from app.settings import Settings, read_settings
from tests.serving import client_of, serving


@asynccontextmanager
async def assembled(app: FastAPI) -> AsyncGenerator[httpx.AsyncClient, None]:
    """Serve an application that a test has changed; gives a client for it."""
    async with serving(app, read_settings(Settings)) as url, client_of(url) as client:
        yield client
