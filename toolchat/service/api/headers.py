"""Response headers: those of every response, those of an answer, and those of CORS."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware

from toolchat.models.base import ChatResponse
from toolchat.service.api.service import model_label
from toolchat.service.observability.observer import current_request

if TYPE_CHECKING:
    from toolchat.service.api.responses.active_request import ActiveRequest

RawHeaders = list[tuple[bytes, bytes]]

SECURITY_HEADERS: tuple[tuple[bytes, bytes], ...] = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"cache-control", b"no-store"),  # nearly every response depends on the client's key
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
    """The headers of an answer."""
    headers = {"Vary": "Accept", **active.reservation.headers}
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


def allow_origins(app: FastAPI, origins: Sequence[str]) -> None:
    """Allow pages of some origins to send requests (CORS); without any, browsers block all other origins."""
    if origins:
        # Clients and tracers add headers of their own, and others with every version. A page is trusted for its origin:
        # no header gives it more rights, and browsers send no cookies for it.
        app.add_middleware(
            CORSMiddleware,
            allow_origins=origins,
            allow_methods=["*"],
            allow_headers=["*"],
            allow_private_network=True,
            expose_headers=["*"],
        )
