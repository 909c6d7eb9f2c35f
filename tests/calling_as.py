"""Being somebody, for tests that go in behind the door."""

from collections.abc import Iterator
from contextlib import contextmanager

from toolchat.service.access.principals import Principal, RequestCaller
from toolchat.tool_calling.caller import current_caller


@contextmanager
def calling_as(name: str = "", *, address: str = "", tools: tuple[str, ...] = ("*",)) -> Iterator[None]:
    """Be a principal of this name, or somebody without a key at this address, as long as the block runs."""
    token = current_caller.set(RequestCaller.from_request(Principal(name, tools), address))
    try:
        yield
    finally:
        current_caller.reset(token)
