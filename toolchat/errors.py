"""Every error that the service raises on purpose.

An error knows its HTTP status, its stable ``code`` and whether trying again can help; one handler
turns it into a problem document (RFC 9457). The tree, by status::

    ConfigurationError      stops the start: one line, exit code 2
    ToolchatError           500, unless one of these:
    ├── 400 InvalidRequest, 401 Unauthorized, 403 CrossSite, Forbidden, 404 NotFound, 406 NotAcceptable
    ├── 408 BodyTimeout, 421 MisdirectedRequest, 429 QuotaExceeded
    ├── 409 IdempotencyConflict, DependencyMissing, SessionBusy
    ├── 413 BodyTooLarge, 414 TooLarge, 415 UnsupportedMediaType, 431 HeadersTooLarge
    ├── 422 ValidationFailed
    │   └── 422 ContextTooLong, ContentFiltered
    ├── 500 CannotPause, 502 ToolLoop, ToolFailed
    ├── 503 NotConfigured, ToolServerUnavailable, Overloaded, Draining, StoreUnavailable, 504 DeadlineExceeded
    └── UpstreamError
        └── 502 UpstreamInvalid, UpstreamUnavailable, 503 ProviderRateLimited, ProviderAuth, 504 UpstreamTimeout
"""

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = [
    "CLIENT_GONE",
    "BodyTimeout",
    "BodyTooLarge",
    "CannotPause",
    "ConfigurationError",
    "ContentFiltered",
    "ContextTooLong",
    "CrossSite",
    "DeadlineExceeded",
    "DependencyMissing",
    "Draining",
    "Forbidden",
    "HeadersTooLarge",
    "IdempotencyConflict",
    "InvalidRequest",
    "MisdirectedRequest",
    "NotAcceptable",
    "NotConfigured",
    "NotFound",
    "Overloaded",
    "ProviderAuth",
    "ProviderRateLimited",
    "QuotaExceeded",
    "SessionBusy",
    "StoreUnavailable",
    "TooLarge",
    "ToolFailed",
    "ToolLoop",
    "ToolServerUnavailable",
    "ToolchatError",
    "Unauthorized",
    "UnsupportedMediaType",
    "UpstreamError",
    "UpstreamInvalid",
    "UpstreamTimeout",
    "UpstreamUnavailable",
    "ValidationFailed",
]


CLIENT_GONE = "client_gone"
"""The outcome in the log of a request whose client left; nobody is there to be told."""


class ConfigurationError(Exception):
    """The service cannot start as it is set up; each line of the message names a fault and its variable."""


class ToolchatError(Exception):
    """Something that the service did not expect went wrong; its log has it under the request's id.

    The base of every error that a client may see. ``detail`` is shown: no secret, upstream URL or upstream body in it.
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
        self.retry_after = retry_after
        """Seconds to wait before trying again, where known."""
        self.headers: Mapping[str, str] = {}
        """What the answer says beside the problem document."""


class UpstreamError(ToolchatError):
    """Something outside this process failed."""

    status, code, title = 502, "upstream", "Upstream failed"


class UpstreamInvalid(UpstreamError):
    """The upstream answered nonsense, refused the request's form, or was cut short."""

    code, title = "upstream-invalid", "Unusable answer from upstream"


class UpstreamUnavailable(UpstreamError):
    """No connection to the upstream, the connection was lost, or it reported a failure of its own."""

    code, title, retryable = "upstream-unavailable", "Upstream unavailable", True


class UpstreamTimeout(UpstreamError):
    """The upstream was silent or slow beyond its limit."""

    status, code, title, retryable = 504, "upstream-timeout", "Upstream timed out", True


class ProviderRateLimited(UpstreamError):
    """The chat provider's rate limit, after our own retries."""

    status, code, title, retryable = 503, "provider-rate-limited", "Provider rate limit", True


class ProviderAuth(UpstreamError):
    """The chat provider rejected the key or blocked the account."""

    status, code, title = 503, "provider-auth", "Provider refused the credentials"


class InvalidRequest(ToolchatError):
    """Undecodable or malformed input."""

    status, code, title = 400, "invalid-request", "Invalid request"


class Unauthorized(ToolchatError):
    """The request needs a key, and has none that is valid."""

    status, code, title = 401, "unauthorized", "A valid key is needed"

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.headers = {"WWW-Authenticate": 'Bearer realm="toolchat"'}


class Forbidden(ToolchatError):
    """The key is valid, and does not allow this."""

    status, code, title = 403, "forbidden", "Not allowed by this key"


class CrossSite(ToolchatError):
    """Another site's page, or a browser that only prefetches, asks for something that has effects."""

    status, code, title = 403, "cross-site", "Not from another site"


class NotFound(ToolchatError):
    """Nothing is kept under this id."""

    status, code, title = 404, "not-found", "Not found"


class NotAcceptable(ToolchatError):
    """None of the forms that the service can give satisfies the header Accept."""

    status, code, title = 406, "not-acceptable", "Not acceptable"


class IdempotencyConflict(ToolchatError):
    """The first request with this idempotency key has not been answered yet."""

    status, code, title, retryable = 409, "idempotency-conflict", "Already running", True


class DependencyMissing(ToolchatError):
    """A tool or an advisor that a paused answer goes on with is not here; the answer goes on waiting."""

    status, code, title, retryable = 409, "part-missing", "Not here", True


class SessionBusy(ToolchatError):
    """Another request of the same session is being answered, and did not end in time."""

    status, code, title, retryable = 409, "session-busy", "Session busy", True


class TooLarge(ToolchatError):
    """The URL is longer than the service reads."""

    status, code, title = 414, "too-large", "Request too large"


class BodyTooLarge(ToolchatError):
    """The body is longer than the service reads."""

    status, code, title = 413, "too-large", "Request body too large"


class UnsupportedMediaType(ToolchatError):
    """The body is of a kind that the service does not read; it reads application/json."""

    status, code, title = 415, "unsupported-media-type", "Unsupported media type"


class BodyTimeout(ToolchatError):
    """The client did not get its body out in time."""

    status, code, title, retryable = 408, "request-timeout", "Request body too slow", True


class HeadersTooLarge(ToolchatError):
    """The headers are longer than the service reads."""

    status, code, title = 431, "too-large", "Request headers too large"


class MisdirectedRequest(ToolchatError):
    """The request calls the service by a name that is not its own."""

    status, code, title = 421, "misdirected", "Not this host"


class QuotaExceeded(ToolchatError):
    """A quota of the principal, or of all together, is used up (draft-ietf-httpapi-ratelimit-headers)."""

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
        """The name of the policy that refuses."""
        self.usage = usage
        """The state of each limit, for protocols that have headers of their own."""


class ValidationFailed(ToolchatError):
    """Well-formed input outside the limits."""

    status, code, title = 422, "validation", "Input outside the limits"


class ContextTooLong(ValidationFailed):
    """The conversation is longer than the model takes."""

    code, title = "context-too-long", "Too much text for the model"


class ContentFiltered(ValidationFailed):
    """The provider's moderation refused the question or the answer."""

    code, title = "content-filtered", "Refused by the provider's moderation"


class CannotPause(ToolchatError):
    """The answer needs an approval and cannot wait for it: a part of its question cannot be kept."""

    status, code, title = 500, "pause-impossible", "Cannot wait for approval"


class NotConfigured(ToolchatError):
    """A switch is off or a secret is missing; the detail names the variable to set."""

    status, code, title = 503, "not-configured", "Not configured"


class ToolServerUnavailable(NotConfigured):
    """The other server that has these tools cannot be used just now; it is looked for again and again."""

    code, title, retryable = "tool-server-away", "Tool server away", True


class Overloaded(ToolchatError):
    """The service has no room for another question just now."""

    status, code, title, retryable = 503, "overloaded", "Overloaded", True


class Draining(ToolchatError):
    """The service is being stopped, and the answer would not be ready in time."""

    status, code, title, retryable = 503, "draining", "The service is stopping", True


class StoreUnavailable(ToolchatError):
    """The state store, which this request needs, cannot be reached."""

    status, code, title, retryable = 503, "store-unavailable", "State store unavailable", True


class DeadlineExceeded(ToolchatError):
    """The whole question took longer than it may."""

    status, code, title, retryable = 504, "deadline", "Deadline exceeded", True


class ToolLoop(ToolchatError):
    """The model kept asking for tools and gave no answer."""

    status, code, title = 502, "tool-loop", "The model did not stop calling tools"


class ToolFailed(ToolchatError):
    """A tool failed, and the service is set up to end the question then instead of telling the model."""

    status, code, title = 502, "tool-failed", "A tool failed"
