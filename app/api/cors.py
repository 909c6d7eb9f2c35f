"""Pages of other origins: which may ask, and what they may send and read (CORS)."""

import re
from collections.abc import Sequence

from fastapi import FastAPI
from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response

__all__ = ["allow_origins"]

_TAKEN = (
    "Authorization",
    "Content-Type",
    "Idempotency-Key",
    "Last-Event-ID",
    "MCP-Protocol-Version",
    "Mcp-Method",
    "Mcp-Name",
    "OpenAI-Organization",
    "OpenAI-Project",
    "User-Agent",
    "X-API-Key",
    "X-Request-ID",
    "X-Session-ID",
    "X-Tenant-ID",
    "X-Toolchat-Progress",
)
"""What pages of other origins may send, where they are allowed to ask."""
_ABOUT_THE_CLIENT = re.compile(r"x-stainless-[a-z0-9-]{1,40}", re.IGNORECASE)
"""By what the official clients of OpenAI say what they are. Nobody here reads it, and each version has other names."""
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
            _Origins,
            allow_origins=origins,
            allow_methods=["*"],
            allow_headers=_TAKEN,
            expose_headers=_EXPOSED,
            max_age=600,
        )


class _Origins(CORSMiddleware):
    def preflight_response(self, request_headers: Headers) -> Response:
        """Answer to a browser that asks for a page; what says what its client is, is taken beside the rest."""
        asked = "access-control-request-headers"
        names = [name.strip() for name in request_headers.get(asked, "").split(",")]
        about = [name for name in names if _ABOUT_THE_CLIENT.fullmatch(name)]
        if not about:
            return super().preflight_response(request_headers)
        rest = ", ".join(name for name in names if name not in about)
        response = super().preflight_response(Headers({**request_headers, asked: rest or "content-type"}))
        response.headers["Access-Control-Allow-Headers"] += "".join(f", {name}" for name in about)
        return response
