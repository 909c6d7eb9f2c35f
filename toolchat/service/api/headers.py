"""Response headers: those of every response, those of an answer, and those that CORS allows and exposes."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fastapi import FastAPI
from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response

from toolchat.models.base import ChatResponse
from toolchat.service.api.service import model_label
from toolchat.service.observability.request import current_request

if TYPE_CHECKING:
    from toolchat.service.api.responses.active_request import ActiveRequest

RawHeaders = list[tuple[bytes, bytes]]

SECURITY_HEADERS: tuple[tuple[bytes, bytes], ...] = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
)
"""The headers of every response, beside ``X-Request-ID``; a response that has one of them keeps its own."""
_SECURITY_NAMES = frozenset(name for name, _ in SECURITY_HEADERS)


def with_security_headers(headers: RawHeaders) -> RawHeaders:
    """Add the security headers that a response lacks."""
    # Pages such as Swagger UI have a policy of their own.
    own = [name for name, _ in headers]
    if _SECURITY_NAMES.isdisjoint(own):
        return [*headers, *SECURITY_HEADERS]
    return [*headers, *(each for each in SECURITY_HEADERS if each[0] not in own)]


def answer_headers(active: "ActiveRequest", response: ChatResponse | None = None) -> dict[str, str]:
    """The headers of an answer.

    Args:
        active: the request; its quota, its approval and its model are read when the headers are sent.
        response: the complete answer; ``None`` for a stream, whose headers are sent before the answer is complete.
    """
    headers = {"Cache-Control": "no-store", "Vary": "Accept", **active.reservation.headers}
    if active.has_model:
        # With CHAT_FALLBACKS another model than the configured one may have answered.
        answered_by = current_request.get().answered_by
        headers["X-Chat-Model"] = model_label(*answered_by) if answered_by else active.service.model_label
        if response is not None:
            headers["X-Finish-Reason"] = response.finish_reason
    if active.session:
        headers["X-Session-ID"] = active.session
    if sandboxed := active.prompt.request.tool_set.sandboxed:
        headers["X-Sandbox"] = ", ".join(name for name in sandboxed if name.isascii()) or "true"
    if active.pending:
        headers["X-Approval-ID"] = active.pending["id"]
    return headers


_ALLOWED = (
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
"""Request headers that pages of allowed origins may send."""
_CLIENT_INFO = re.compile(r"x-stainless-[a-z0-9-]{1,40}", re.IGNORECASE)
"""Headers in which OpenAI's official clients describe themselves. They are ignored; each version has other names."""
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
"""Response headers that those pages may read."""


def allow_origins(app: FastAPI, origins: Sequence[str]) -> None:
    """Allow pages of some origins to send requests (CORS); without any, browsers block all other origins."""
    if origins:
        app.add_middleware(
            _Cors,
            allow_origins=origins,
            allow_methods=["*"],
            allow_headers=_ALLOWED,
            expose_headers=_EXPOSED,
            max_age=600,
        )


class _Cors(CORSMiddleware):
    def preflight_response(self, request_headers: Headers) -> Response:
        """Answer a preflight request; headers that describe the client are allowed in addition to the list."""
        requested = "access-control-request-headers"
        names = [name.strip() for name in request_headers.get(requested, "").split(",")]
        client_info = [name for name in names if _CLIENT_INFO.fullmatch(name)]
        if not client_info:
            return super().preflight_response(request_headers)
        others = ", ".join(name for name in names if name not in client_info)
        response = super().preflight_response(Headers({**request_headers, requested: others or "content-type"}))
        response.headers["Access-Control-Allow-Headers"] += "".join(f", {name}" for name in client_info)
        return response
