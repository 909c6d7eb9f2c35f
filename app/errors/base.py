"""What every error is."""

from collections.abc import Mapping

__all__ = [
    "CLIENT_GONE",
    "ConfigurationError",
    "ToolchatError",
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
