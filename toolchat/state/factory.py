"""Open the state store that the settings name."""

from collections.abc import Callable

from toolchat.errors import ConfigurationError
from toolchat.state.base import StateStore, shared_client_key
from toolchat.state.memory import InMemoryStateStore

__all__ = ["open_state_store"]

_FORMS = (
    "redis://[user:password@]host[:port][/number], rediss:// for TLS, or unix://[user:password@]/path[?db=number]; "
    "the user and the password percent-encoded"
)


def open_state_store(
    redis_url: str | None, *, deadline: float, max_entries: int, client_key: Callable[[], str] = shared_client_key
) -> StateStore:
    """Create the store; it connects when it is started.

    Args:
        redis_url: the address of Redis or Valkey; ``None`` keeps all state in this process.
        deadline: seconds for one operation of Redis.
        max_entries: limit of the store in this process.
        client_key: identifies the current client, whose values the store in this process counts.

    Raises:
        ConfigurationError: the URL is invalid, or the package ``redis`` is not installed.
    """
    if redis_url is None:
        return InMemoryStateStore(max_entries=max_entries, client_key=client_key)
    try:
        from toolchat.state.redis import RedisStateStore

        return RedisStateStore(redis_url, deadline=deadline)
    except ModuleNotFoundError as missing:
        if missing.name is None or missing.name.partition(".")[0] != "redis":
            raise  # the package is there, and lacks something itself
        raise ConfigurationError("REDIS_URL: needs the package redis: pip install redis") from None
    except ValueError:
        raise ConfigurationError(f"REDIS_URL: must be {_FORMS}") from None
