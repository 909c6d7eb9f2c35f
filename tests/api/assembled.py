"""The application with something of one's own put in, on a real socket."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx
from fastapi import FastAPI

from tests.serving import client_of, serving
from toolchat.service.api.fast_router import FastRouter
from toolchat.service.settings.base import read_settings
from toolchat.service.settings.service_settings import Settings


@asynccontextmanager
async def assembled(app: FastAPI) -> AsyncGenerator[httpx.AsyncClient, None]:
    """Serve an application that a test has changed; gives a client for it."""
    async with serving(app, read_settings(Settings)) as url, client_of(url) as client:
        yield client


def short_way(app: FastAPI) -> FastRouter:
    """The short way of questions as the application has it."""
    middleware: list[Any] = app.user_middleware  # each of which has arguments of its own
    return next(FastRouter(app.router, **each.kwargs) for each in middleware if each.cls is FastRouter)
