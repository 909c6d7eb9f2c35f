"""The service: the engine behind FastAPI; ``exports.py`` lists what applications and tool folders import."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolchat.service.exports import *  # noqa: F403


def __getattr__(name: str) -> Any:
    """Import the interface at its first use (PEP 562): the command line starts without the web framework."""
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("toolchat.service.exports"), name)
