"""Check that nested time limits are ordered: an inner limit longer than its outer one never takes effect."""

from collections.abc import Iterable, Iterator

from pydantic import BaseModel

from toolchat.service.settings.base import environment_name
from toolchat.service.settings.service_settings import Settings

_INNER_LIMITS = {
    "model_timeout": ("model_idle_timeout",),
    "tool_timeout": (),
    "request_timeout": ("model_timeout", "tool_timeout", "session_wait", "server_client_timeout"),
    "session_ttl": ("request_timeout",),
}
"""The limits inside each limit. SHUTDOWN_TIMEOUT is not one: requests may run longer than it on purpose."""
_TOOL_CALL_LIMIT = "timeout"
"""The setting by which a tool module limits one call of its tools."""

_Limit = tuple[str, float]


def inverted_time_limits(settings: Settings, modules: Iterable[BaseModel], lock: float) -> Iterator[str]:
    """Yield a warning for each limit that is shorter than a limit inside it.

    Args:
        settings: the settings of the service.
        modules: the settings of the registered tool modules.
        lock: seconds after which a conversation's lock expires unless it is renewed.
    """
    tool_calls = [_limit(each, _TOOL_CALL_LIMIT) for each in modules if _TOOL_CALL_LIMIT in type(each).model_fields]
    for outer, names in _INNER_LIMITS.items():
        inner = [_limit(settings, name) for name in names] + (tool_calls if outer == "tool_timeout" else [])
        yield from _warnings(_limit(settings, outer), inner)
    # A lock is renewed after a third of its lifetime: a renewal slower than the other two thirds comes too late.
    rest = ("two thirds of the lifetime of a conversation's lock", lock * 2 / 3)
    yield from _warnings(rest, [_limit(settings, "redis_timeout")])


def _limit(settings: BaseModel, field: str) -> _Limit:
    return environment_name(type(settings), field), getattr(settings, field)


def _warnings(outer: _Limit, inner: Iterable[_Limit]) -> Iterator[str]:
    longer = " and ".join(f"{name} ({seconds:g} s)" for name, seconds in inner if seconds > outer[1])
    if longer:
        yield f"{longer} should not be longer than {outer[0]} ({outer[1]:g} s), which ends first"
