"""The command line, ``toolchat COMMAND``: each command is a function that returns its exit code."""

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib.util import find_spec


@dataclass(frozen=True, slots=True)
class Program:
    """What an application hands to the command line; by default it has no tools but those of ``TOOLS_PATH``."""

    command: str = "toolchat"
    """How the program is started, for help texts."""
    tools: tuple[str, ...] = ()
    """Folders, or names of installed packages, whose tools are loaded in addition to those of ``TOOLS_PATH``."""
    sandbox: Callable[[], AbstractContextManager[str]] | None = None
    """Serves invented upstreams of these tools and yields their address, for ``demo`` and ``--demo``."""


def run(program: Program = Program()) -> int:
    """Run the command that the process was started with.

    Returns:
        The exit code: 0; 1 on failure, such as a question that could not be answered; 2 if the configuration or the
        command line is invalid; 3 if a tool call needs approval and no terminal is attached.
    """
    if find_spec("fastapi") is None or find_spec("click") is None:
        print("toolchat: the service is not installed: pip install 'toolchat[service]'", file=sys.stderr)  # noqa: T201
        return 2
    from toolchat.service.cli.main import run as run_command

    return run_command(program)
