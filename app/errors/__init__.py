"""Every error that the service raises on purpose.

An error knows its HTTP status, its stable ``code`` and whether trying again can help; one handler
turns it into a problem document (RFC 9457). The tree, by status::

    ConfigurationError      stops the start: one line, exit code 2
    ToolchatError           500, unless one of these:
    ├── 400 InvalidRequest, 401 Unauthorized, 403 CrossSite, Forbidden, 404 NotFound, 406 NotAcceptable
    ├── 408 BodyTimeout, 421 MisdirectedRequest, 429 QuotaExceeded, TooManyFaults
    ├── 409 IdempotencyConflict, PartMissing, SessionBusy
    ├── 413 BodyTooLarge, 414 TooLarge, 415 UnsupportedMediaType, 431 HeadersTooLarge
    ├── 422 ValidationFailed
    │   └── 422 ContextTooLong, ContentFiltered
    ├── 500 PauseImpossible, 502 ToolLoop, ToolFailed
    ├── 503 NotConfigured, ToolServerAway, Overloaded, Draining, StoreUnavailable, 504 DeadlineExceeded
    └── UpstreamError
        └── 502 UpstreamInvalid, UpstreamUnavailable, 503 ProviderRateLimited, ProviderAuth, 504 UpstreamTimeout
"""

from app.errors.base import (
    CLIENT_GONE,
    ConfigurationError,
    ToolchatError,
)
from app.errors.refusals import (
    BodyTimeout,
    BodyTooLarge,
    ContentFiltered,
    ContextTooLong,
    CrossSite,
    Forbidden,
    HeadersTooLarge,
    IdempotencyConflict,
    InvalidRequest,
    MisdirectedRequest,
    NotAcceptable,
    NotFound,
    PartMissing,
    QuotaExceeded,
    SessionBusy,
    TooLarge,
    TooManyFaults,
    Unauthorized,
    UnsupportedMediaType,
    ValidationFailed,
)
from app.errors.service import (
    DeadlineExceeded,
    Draining,
    NotConfigured,
    Overloaded,
    PauseImpossible,
    StoreUnavailable,
    ToolFailed,
    ToolLoop,
    ToolServerAway,
)
from app.errors.upstream import (
    ProviderAuth,
    ProviderRateLimited,
    UpstreamError,
    UpstreamInvalid,
    UpstreamTimeout,
    UpstreamUnavailable,
)

__all__ = [
    "CLIENT_GONE",
    "BodyTimeout",
    "BodyTooLarge",
    "ConfigurationError",
    "ContentFiltered",
    "ContextTooLong",
    "CrossSite",
    "DeadlineExceeded",
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
    "PartMissing",
    "PauseImpossible",
    "ProviderAuth",
    "ProviderRateLimited",
    "QuotaExceeded",
    "SessionBusy",
    "StoreUnavailable",
    "TooLarge",
    "TooManyFaults",
    "ToolFailed",
    "ToolLoop",
    "ToolServerAway",
    "ToolchatError",
    "Unauthorized",
    "UnsupportedMediaType",
    "UpstreamError",
    "UpstreamInvalid",
    "UpstreamTimeout",
    "UpstreamUnavailable",
    "ValidationFailed",
]
