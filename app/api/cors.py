"""Pages of other origins: which may ask, and what they may send and read (CORS)."""

from collections.abc import Sequence

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware

__all__ = ["allow_origins"]

_TAKEN = (
    "Authorization",
    "Content-Type",
    "Idempotency-Key",
    "Last-Event-ID",
    "MCP-Protocol-Version",
    "Mcp-Method",
    "Mcp-Name",
    "X-API-Key",
    "X-Request-ID",
    "X-Session-ID",
    "X-Tenant-ID",
    "X-Toolchat-Progress",
)
"""What pages of other origins may send, where they are allowed to ask."""
_EXPOSED = (
    "RateLimit",
    "RateLimit-Policy",
    "Retry-After",
    "X-Approval-ID",
    "X-Chat-Model",
    "X-Finish-Reason",
    "X-Request-ID",
    "X-Sandbox",
    "X-Session-ID",
    "X-Toolchat-Overhead-Ms",
    "openai-processing-ms",
    *(f"x-ratelimit-{what}-{kind}" for kind in ("requests", "tokens") for what in ("limit", "remaining", "reset")),
    "x-should-retry",
)
"""What they may read."""


def allow_origins(app: FastAPI, origins: Sequence[str]) -> None:
    """Let pages of some origins ask; where there are none, browsers refuse them all by themselves."""
    if origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=origins,
            allow_methods=["*"],
            allow_headers=_TAKEN,
            expose_headers=_EXPOSED,
            max_age=600,
        )
