"""What is wrong outside of this process: 502, 503 and 504."""

from app.errors.base import ToolchatError

__all__ = [
    "ProviderAuth",
    "ProviderRateLimited",
    "UpstreamError",
    "UpstreamInvalid",
    "UpstreamTimeout",
    "UpstreamUnavailable",
]


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
