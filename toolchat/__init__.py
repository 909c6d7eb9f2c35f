"""The engine of toolchat as a library: chat models, tools and the loop between them (``docs/library.md``).

Programs and tool folders import from here; the modules below are not part of the interface.
"""

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from toolchat.exports import *  # noqa: F403 - the list stands there once
    from toolchat.state.postgresql import PostgresqlStateStore as PostgresqlStateStore
    from toolchat.state.redis import RedisStateStore as RedisStateStore
else:
    _OPTIONAL = {"PostgresqlStateStore": "state.postgresql", "RedisStateStore": "state.redis"}

    def __getattr__(name: str) -> Any:
        """Import the engine at its first use (PEP 562), so that ``import toolchat`` loads no dependency."""
        return getattr(importlib.import_module(f"toolchat.{_OPTIONAL.get(name, 'exports')}"), name)
