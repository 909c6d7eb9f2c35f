"""The program whose commands run: the service alone, or an application that adds tools to it."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Program:
    """What an application hands to the command line."""

    command: str = "toolchat"
    """How the program is started, for help texts."""
    tools: tuple[str, ...] = ()
    """Folders, or names of installed packages, whose tools are loaded in addition to those of ``TOOLS_PATH``."""
    sandbox: Callable[[], AbstractContextManager[str]] | None = None
    """Serves invented upstreams of these tools and yields their address, for ``demo`` and ``--demo``."""
