"""Time limits that should lie within one another: what is to end first must not be given longer than what holds it."""

from collections.abc import Iterable, Iterator

from app.settings.base import EnvironmentSettings, Settings, environment_name

__all__ = ["inverted_time_limits"]

_WITHIN = {
    "model_idle_timeout": ("connect_timeout",),
    "model_timeout": ("connect_timeout", "model_idle_timeout"),
    "tool_timeout": ("connect_timeout",),
    "request_timeout": ("model_timeout", "tool_timeout", "session_wait", "server_write_timeout", "stream_keep_alive"),
    "session_ttl": ("request_timeout",),
}
"""What each limit of the service holds. That answers may run for longer than SHUTDOWN_TIMEOUT is meant."""
_WITHIN_A_CALL = ("timeout", "max_wait")
"""The fields by which tool folders limit what one call of a tool does."""

_Limit = tuple[str, float]


def inverted_time_limits(settings: Settings, folders: Iterable[EnvironmentSettings], lock: float) -> Iterator[str]:
    """A line for each limit that ends what has a longer one, which therefore never takes effect.

    Args:
        settings: the service's own.
        folders: those of the tool folders that register.
        lock: seconds after which the lock of a conversation runs out unless the store has renewed it.
    """
    in_a_call = [_limit(each, name) for each in folders for name in _WITHIN_A_CALL if name in type(each).model_fields]
    for outer, names in _WITHIN.items():
        inner = [_limit(settings, name) for name in names] + (in_a_call if outer == "tool_timeout" else [])
        yield from _told(_limit(settings, outer), inner)
    # A lock is renewed when a third of its time is over: an attempt that may take the rest ends when it is too late.
    rest = ("two thirds of the time of a conversation's lock", lock * 2 / 3)
    yield from _told(rest, [_limit(settings, "redis_timeout")])


def _limit(settings: EnvironmentSettings, field: str) -> _Limit:
    return environment_name(type(settings), field), getattr(settings, field)


def _told(outer: _Limit, inner: Iterable[_Limit]) -> Iterator[str]:
    longer = " and ".join(f"{name} ({seconds:g} s)" for name, seconds in inner if seconds > outer[1])
    if longer:
        yield f"{longer} should not be longer than {outer[0]} ({outer[1]:g} s), which ends first"
