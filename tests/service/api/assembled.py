"""The application with something of one's own put in, on a real socket."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import httpx
from fastapi import FastAPI

from tests.serving import client_of, serving
from toolchat.service.settings.base import read_settings
from toolchat.service.settings.service_settings import Settings


@asynccontextmanager
async def assembled(app: FastAPI) -> AsyncGenerator[httpx.AsyncClient, None]:
    """Serve an application that a test has changed; gives a client for it."""
    async with serving(app, read_settings(Settings)) as url, client_of(url) as client:
        yield client
