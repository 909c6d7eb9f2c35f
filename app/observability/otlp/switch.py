"""Traces, if they are wanted."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from app.observability.otlp.settings import TracingConfiguration

__all__ = ["traced"]

_FLUSH_SECONDS = 3.0


@asynccontextmanager
async def traced(configuration: TracingConfiguration, shutdown_timeout: float) -> AsyncGenerator[None, None]:
    """Trace the requests of this process as long as the block runs, if that is wanted; send the rest at its end.

    Args:
        configuration: says whether, and how.
        shutdown_timeout: seconds that the service may take to stop; sending takes three of them at most.
    """
    if not configuration.is_on:
        yield
        return
    from app.observability.otlp.sending import sending

    async with sending(configuration, min(_FLUSH_SECONDS, shutdown_timeout)):
        yield
