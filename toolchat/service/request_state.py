"""What the service knows of one request while it is answered, from the guard to the log line."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from starlette.responses import Response
from starlette.types import Scope

from toolchat.errors import CLIENT_GONE, ToolchatError

if TYPE_CHECKING:
    from toolchat.service.api.background.checkpoints import CheckpointAdvisor

_KEY = "toolchat.request"


@dataclass(slots=True)
class RequestState:
    """The state of one request."""

    request_id: str = ""
    own_address: str = ""
    """The service's address as the client knows it, where the request itself cannot show it."""
    background: "CheckpointAdvisor | None" = None
    """Stores and resumes the turn of a background question; the caller of one is authenticated already."""
    base: str = ""
    """The path of the base URL that clients of its protocol need."""
    is_short: bool = False
    """Whether the client's base URL lacks that base."""
    max_body_bytes: int = 0
    resource_metadata: str = ""
    """The path of the metadata for OAuth clients that its 401 names."""
    error_response: Callable[[ToolchatError, str], Response] | None = None
    """Answers with an error, if its protocol or format has a form of its own."""
    form: str = ""
    """The media type of an answer; the request counts as a question if it has one."""
    variant: str = ""
    """Which tools a module's chat route offers."""
    in_chat_page: bool = False
    """Whether people see the answer in the page of another program."""
    for_model: bool = False
    """Whether another program's model reads the answer."""
    outlives_client: bool = False
    """Whether the answer is another one's, and goes on if the client disconnects."""
    answer_headers: Callable[[], Mapping[str, str]] = dict
    """The headers of a tool's answer that MCP sends."""
    is_complete: bool = False
    """Whether the response has been sent."""
    outcome: str = "ok"
    failure: ToolchatError | None = None
    """The error that it is answered with."""
    will_retry: bool = False
    """Whether its background question is tried again, so that it counts later, by its end."""
    summary: dict[str, Any] = field(default_factory=dict)
    """Further fields of its log line."""

    def fail(self, error: ToolchatError) -> None:
        """Record the error that it is answered with; a client that has left does not receive it."""
        if self.outcome != CLIENT_GONE:
            self.outcome, self.failure = error.code, error


def state_of(scope: Scope) -> RequestState:
    """The state of a request; the first call, the guard's, makes it."""
    state: RequestState | None = scope.get(_KEY)
    if state is None:
        state = scope[_KEY] = RequestState()
    return state


def with_state(scope: Scope, state: RequestState) -> Scope:
    """A scope of a request that comes from the service itself, with its state."""
    return {**scope, _KEY: state}
