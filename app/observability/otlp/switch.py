"""Turns traces on if they are configured."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from app.observability.otlp.settings import TracingConfiguration

__all__ = ["traced"]

_FLUSH_SECONDS = 3.0


@asynccontextmanager
async def traced(configuration: TracingConfiguration, shutdown_timeout: float) -> AsyncGenerator[None, None]:
    """Trace requests within the block if traces are configured; export the remaining spans at its end.

    Args:
        configuration: the configuration of traces.
        shutdown_timeout: seconds that shutdown may take; the export takes at most three of them.
    """
    if not configuration.is_on:
        yield
        return
    from app.observability.otlp.sending import sending

    async with sending(configuration, min(_FLUSH_SECONDS, shutdown_timeout)):
        yield
