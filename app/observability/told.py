"""What spans are told of, as far as they look at it: those who make it live above."""

from collections.abc import Sequence
from typing import Any, Protocol, Self

from toolchat.messages import AssistantMessage, Message, Usage

__all__ = ["Answered", "Finished", "Prompted", "Sent"]


class Prompted(Protocol):
    """What a chat model is asked."""

    @property
    def messages(self) -> Sequence[Message]:
        """The conversation."""
        ...

    @property
    def options(self) -> Any:
        """Among them ``model``, where it is not the ordinary one."""
        ...

    @property
    def stream(self) -> bool:
        """Whether the answer comes piece by piece."""
        ...


class Answered(Protocol):
    """What came back."""

    @property
    def message(self) -> AssistantMessage:
        """The answer."""
        ...

    @property
    def finish_reason(self) -> str:
        """Why it ended."""
        ...

    @property
    def usage(self) -> Usage:
        """Tokens."""
        ...

    @property
    def model(self) -> str:
        """Who answered."""
        ...


class Finished(Protocol):
    """What became of a tool call."""

    @property
    def error_kind(self) -> str | None:
        """Why it failed, if it did."""
        ...

    @property
    def result(self) -> str:
        """What the model is told."""
        ...

    @property
    def cached(self) -> bool:
        """Whether an earlier call's result was given."""
        ...

    @property
    def repaired(self) -> bool:
        """Whether its arguments were."""
        ...


class Sent(Protocol):
    """A request to an upstream."""

    @property
    def method(self) -> str:
        """The HTTP method."""
        ...

    @property
    def url(self) -> tuple[str, str, int, str]:
        """Scheme, host, port and path; not the query."""
        ...

    def with_lines(self, lines: bytes) -> Self:
        """The same with more header lines."""
        ...
