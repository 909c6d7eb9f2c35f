"""What is wrong with a request, or with its moment: 4xx. Whoever asks can do something about it."""

from collections.abc import Mapping

from app.errors.base import ToolchatError

__all__ = [
    "BodyTimeout",
    "BodyTooLarge",
    "ContentFiltered",
    "ContextTooLong",
    "CrossSite",
    "Forbidden",
    "HeadersTooLarge",
    "IdempotencyConflict",
    "InvalidRequest",
    "MisdirectedRequest",
    "NotAcceptable",
    "NotFound",
    "PartMissing",
    "QuotaExceeded",
    "SessionBusy",
    "TooLarge",
    "TooManyFaults",
    "Unauthorized",
    "UnsupportedMediaType",
    "ValidationFailed",
]


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


class PartMissing(ToolchatError):
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
        self, detail: str, violated: str = "", *, retry_after: float = 1, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(detail, retry_after=retry_after)
        self.headers = headers or {}
        self.violated = violated
        """The name of the policy that refuses."""


class TooManyFaults(ToolchatError):
    """This address has sent too many requests that could not be answered."""

    status, code, title, retryable = 429, "too-many-faults", "Too many faults", True


class ValidationFailed(ToolchatError):
    """Well-formed input outside the limits."""

    status, code, title = 422, "validation", "Input outside the limits"


class ContextTooLong(ValidationFailed):
    """The conversation is longer than the model takes."""

    code, title = "context-too-long", "Too much text for the model"


class ContentFiltered(ValidationFailed):
    """The provider's moderation refused the question or the answer."""

    code, title = "content-filtered", "Refused by the provider's moderation"
