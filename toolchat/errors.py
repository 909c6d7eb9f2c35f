"""The errors of toolchat, each with an HTTP status, a stable ``code`` and whether a retry can help.

The service answers them as problem documents (RFC 9457). The tree, by status::

    ConfigurationError      prevents the start: one line per fault, exit code 2
    ToolchatError           500, unless one of these:
    ├── 400 InvalidRequest, 401 Unauthorized, 403 CrossSite, Forbidden, 404 NotFound, 406 NotAcceptable
    ├── 408 RequestTimeout, 421 MisdirectedRequest, 429 QuotaExceeded
    ├── 409 IdempotencyConflict, DependencyMissing, SessionBusy
    ├── 413 BodyTooLarge, 414 TooLarge, 415 UnsupportedMediaType, 431 HeadersTooLarge
    ├── 422 ValidationFailed
    │   └── 422 ContextTooLong, ContentFiltered
    ├── 500 CannotPause, 502 ToolLoop, ToolFailed
    ├── 503 NotConfigured, ToolServerUnavailable, Overloaded, Draining, StoreUnavailable, 504 DeadlineExceeded
    └── UpstreamError
        └── 502 UpstreamInvalid, UpstreamUnavailable, 504 UpstreamTimeout
            503 ProviderAuth, ProviderQuota, ProviderRateLimited
"""

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

CLIENT_GONE = "client_gone"
"""The outcome in logs and metrics if the client disconnected before the response, or cancelled its question."""


def seconds_from(value: Any) -> float | None:
    """Seconds as a number, for errors that carry another value, such as a header's text; ``None`` if it is none."""
    try:
        seconds = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return seconds if isfinite(seconds) and seconds >= 0 else None


class ConfigurationError(Exception):
    """The configuration is invalid; each line of the message names a variable and its fault."""


class ToolchatError(Exception):
    """An unexpected failure, whose cause is in the log; the base of all other errors.

    Clients see ``detail``, so it must not contain secrets, upstream URLs or upstream bodies.
    """

    status = 500
    code = "internal"
    title = "Internal error"
    retryable = False

    def __init__(self, detail: str, *, retry_after: float | None = None, retryable: bool | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        if retryable is not None:
            self.retryable = retryable
        self.retry_after = seconds_from(retry_after)
        """Seconds to wait before a retry, if known."""
        self.headers: Mapping[str, str] = {}
        """Headers that the response has in addition."""
        self.log_fields: dict[str, str | int] = {}
        """What operators need beside the detail, for logs and traces: never shown to clients, and without secrets."""
        self.provider_message = ""
        """The chat provider's own words, which may quote the conversation and, until a model cleaned them, a key."""
        self.provider_param = ""
        """The part of the request that the chat provider refuses, such as ``tools[2].function.parameters``."""

    @property
    def for_operators(self) -> str:
        """The code, the detail and, if it is known, the cause in one line; clients never see it."""
        cause = self.log_fields.get("cause") or self.log_fields.get("last_failure")
        return f"{self.code}: {self.detail}{f' ({cause})' if cause else ''}"


class UpstreamError(ToolchatError):
    """An upstream failed: the chat provider, or a service that a tool calls."""

    status, code, title = 502, "upstream", "Upstream error"
    is_stale = False
    """Whether it only shows that a kept connection had been closed, which says nothing about the upstream."""


class UpstreamInvalid(UpstreamError):
    """The upstream sent an invalid or incomplete response, or rejected the request."""

    code, title = "upstream-invalid", "Invalid upstream response"


class UpstreamUnavailable(UpstreamError):
    """The upstream cannot be reached, dropped the connection, or reported an internal error."""

    code, title, retryable = "upstream-unavailable", "Upstream unavailable", True


class UpstreamTimeout(UpstreamError):
    """The upstream exceeded a time limit."""

    status, code, title, retryable = 504, "upstream-timeout", "Upstream timed out", True


class ProviderRateLimited(UpstreamError):
    """The chat provider's rate limit is exceeded, after all retries."""

    status, code, title, retryable = 503, "provider-rate-limited", "Provider rate limit", True


class ProviderAuth(UpstreamError):
    """The chat provider rejected the key or blocked the account."""

    status, code, title = 503, "provider-auth", "Provider rejected the credentials"


class ProviderQuota(UpstreamError):
    """The account at the chat provider has no quota or no money left."""

    status, code, title = 503, "provider-quota", "Provider quota exhausted"


class InvalidRequest(ToolchatError):
    """The request cannot be decoded, or is malformed."""

    status, code, title = 400, "invalid-request", "Invalid request"


class Unauthorized(ToolchatError):
    """The request has no valid key, and needs one."""

    status, code, title = 401, "unauthorized", "Valid API key required"

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.headers = {"WWW-Authenticate": 'Bearer realm="toolchat"'}


class Forbidden(ToolchatError):
    """The key is valid but does not allow this request."""

    status, code, title = 403, "forbidden", "Not allowed by this key"


class CrossSite(ToolchatError):
    """A request with side effects comes from another site's page, or from a browser's prefetch."""

    status, code, title = 403, "cross-site", "Cross-site request rejected"


class NotFound(ToolchatError):
    """No object has this id."""

    status, code, title = 404, "not-found", "Not found"


class NotAcceptable(ToolchatError):
    """No response format matches the ``Accept`` header."""

    status, code, title = 406, "not-acceptable", "Not acceptable"


class IdempotencyConflict(ToolchatError):
    """The first request with this idempotency key is still in progress."""

    status, code, title, retryable = 409, "idempotency-conflict", "Idempotency conflict", True


class DependencyMissing(ToolchatError):
    """A tool or advisor that a paused turn needs is unavailable; the turn stays paused."""

    status, code, title, retryable = 409, "part-missing", "Tool or advisor unavailable", True


class SessionBusy(ToolchatError):
    """Another request of the same session did not finish in time."""

    status, code, title, retryable = 409, "session-busy", "Session busy", True


class TooLarge(ToolchatError):
    """The URL exceeds the size limit."""

    status, code, title = 414, "too-large", "Request too large"


class BodyTooLarge(ToolchatError):
    """The request body exceeds the size limit."""

    status, code, title = 413, "too-large", "Request body too large"


class UnsupportedMediaType(ToolchatError):
    """The media type of the request body is not supported; only ``application/json`` is."""

    status, code, title = 415, "unsupported-media-type", "Unsupported media type"


class RequestTimeout(ToolchatError):
    """The client did not send its request in time."""

    status, code, title, retryable = 408, "request-timeout", "Request timeout", True


class HeadersTooLarge(ToolchatError):
    """The request headers exceed the size limit."""

    status, code, title = 431, "too-large", "Request headers too large"


class MisdirectedRequest(ToolchatError):
    """The ``Host`` of the request is not a name of this service."""

    status, code, title = 421, "misdirected", "Unknown host name"


class QuotaExceeded(ToolchatError):
    """A quota of the principal, or of the whole service, is exceeded (draft-ietf-httpapi-ratelimit-headers)."""

    status, code, title, retryable = 429, "quota-exceeded", "Quota exceeded", True

    def __init__(
        self,
        detail: str,
        violated: str = "",
        *,
        retry_after: float = 1,
        headers: Mapping[str, str] | None = None,
        usage: Sequence[Any] = (),
    ) -> None:
        super().__init__(detail, retry_after=retry_after)
        self.headers = headers or {}
        self.violated = violated
        """The name of the exceeded quota policy."""
        self.usage = usage
        """The state of each limit, for protocols with rate limit headers of their own."""


class ValidationFailed(ToolchatError):
    """The input is well-formed but not valid."""

    status, code, title = 422, "validation", "Input outside the limits"
    param: str | None = None
    """The name of the parameter, for formats that have a field for it."""


class ContextTooLong(ValidationFailed):
    """The conversation exceeds the context window of the model."""

    code, title = "context-too-long", "Context too long"
    has_run = False
    """Whether tools of the turn have run already, so that it must not begin again."""


class ContentFiltered(ValidationFailed):
    """The provider's moderation rejected the prompt or the answer."""

    code, title = "content-filtered", "Refused by content moderation"


class CannotPause(ToolchatError):
    """A tool call needs approval, but the turn cannot be stored to wait for it."""

    status, code, title = 500, "pause-impossible", "Cannot wait for approval"


class NotConfigured(ToolchatError):
    """A tool or provider is switched off or lacks a secret; the detail names the variable to set."""

    status, code, title = 503, "not-configured", "Not configured"


class ToolServerUnavailable(NotConfigured):
    """The MCP server of a tool is unavailable; the service keeps reconnecting."""

    code, title, retryable = "tool-server-away", "Tool server unavailable", True


class Overloaded(ToolchatError):
    """The limit of concurrent chat requests is reached."""

    status, code, title, retryable = 503, "overloaded", "Overloaded", True


class Starting(ToolchatError):
    """Some tools are not there yet; questions are answered with the others."""

    status, code, title, retryable = 503, "starting", "Service is starting", True


class Draining(ToolchatError):
    """The service is shutting down and accepts no further chat requests."""

    status, code, title, retryable = 503, "draining", "Service is shutting down", True


class StoreUnavailable(ToolchatError):
    """The state store is unavailable."""

    status, code, title, retryable = 503, "store-unavailable", "State store unavailable", True


class StoreFull(ToolchatError):
    """The state store is full of what is stored for ever."""

    status, code, title = 507, "store-full", "State store full"


class DeadlineExceeded(ToolchatError):
    """The chat request exceeded its total time limit."""

    status, code, title, retryable = 504, "deadline", "Deadline exceeded", True


class ToolLoop(ToolchatError):
    """The model kept calling tools until the limit of rounds and gave no answer."""

    status, code, title = 502, "tool-loop", "Tool loop did not end"


class ToolFailed(ToolchatError):
    """A tool failed, and the configuration ends the chat request instead of reporting it to the model."""

    status, code, title = 502, "tool-failed", "A tool failed"
