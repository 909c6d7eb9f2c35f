"""What the service itself cannot do: 5xx."""

from app.errors.base import ToolchatError

__all__ = [
    "DeadlineExceeded",
    "Draining",
    "NotConfigured",
    "Overloaded",
    "PauseImpossible",
    "StoreUnavailable",
    "ToolFailed",
    "ToolLoop",
    "ToolServerAway",
]


class PauseImpossible(ToolchatError):
    """The answer needs an approval and cannot wait for it: a part of its question cannot be kept."""

    status, code, title = 500, "pause-impossible", "Cannot wait for approval"


class NotConfigured(ToolchatError):
    """A switch is off or a secret is missing; the detail names the variable to set."""

    status, code, title = 503, "not-configured", "Not configured"


class ToolServerAway(NotConfigured):
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
