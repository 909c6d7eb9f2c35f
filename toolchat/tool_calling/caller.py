"""The caller: the client on whose behalf tools run."""

from contextvars import ContextVar

from toolchat.messages import immutable


@immutable
class Caller:
    """The client on whose behalf tools run; every tool is allowed.

    A service subclasses it to restrict tools, and sets :data:`current_caller` for each request. A tool reads it as
    ``context.caller`` of its :class:`ToolContext`.
    """

    name: str = ""
    """The client's name; empty if the client is anonymous."""
    client_key: str = ""
    """Identifies the client wherever clients take turns or share a limit, such as its name or address."""
    tenant: str = ""
    """The tenant whose data the tools may use; empty if there is none. It never comes from a model."""
    roles: frozenset[str] = frozenset()

    def may_use(self, tool: str) -> bool:  # noqa: ARG002 - for subclasses
        """Whether the caller may run a tool; checked before each call, even if the tool was offered."""
        return True


current_caller: ContextVar[Caller] = ContextVar("caller", default=Caller())  # noqa: B039 - it is immutable
"""The caller of the current request, also within tools and their threads; by default one that may use every tool."""


def current_client_key() -> str:
    """The key of the current caller, for ``client_key=`` of locks and stores."""
    return current_caller.get().client_key
