"""The program whose commands run: the service alone, or an application that adds tools to it."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Program:
    """What an application hands to the command line.

    Attributes:
        command: how the program is started, for help texts.
        tools: folders, or names of installed packages, whose tools are loaded in addition to those of ``TOOLS_PATH``.
        sandbox: serves invented upstreams of these tools and yields their address, for ``demo`` and ``--demo``; without
            it there is neither.
    """

    command: str = "toolchat"
    tools: tuple[str, ...] = ()
    sandbox: Callable[[], AbstractContextManager[str]] | None = None
