"""The command line, ``toolchat COMMAND``: each command is a function that returns its exit code."""

import sys
from importlib.util import find_spec

from toolchat.service.cli.program import Program as Program


def run(program: Program = Program()) -> int:
    """Run the command that the process was started with, with an application's own tools if it has any.

    Returns:
        The exit code: 0; 1 on failure, such as a question that could not be answered; 2 if the configuration or the
        command line is invalid; 3 if a tool call needs approval and no terminal is attached.
    """
    if find_spec("fastapi") is None or find_spec("click") is None:
        print("toolchat: the service is not installed: pip install 'toolchat[service]'", file=sys.stderr)  # noqa: T201
        return 2
    from toolchat.service.cli.main import run as run_command

    return run_command(program)
