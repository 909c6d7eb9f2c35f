"""The command line: parses the arguments, runs one command, and returns its exit code."""

import io
import logging
import os
import signal
import sys
from pathlib import Path

import click

from toolchat.errors import ConfigurationError
from toolchat.service.cli import Program
from toolchat.service.cli.commands import commands
from toolchat.service.process import pause_collections


def run(program: Program) -> int:
    """Run the command that the process was started with; return the exit code."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # it was closed before the start
            setattr(sys, name, open(os.devnull, "w"))  # noqa: PTH123, SIM115 - open until the process exits
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    sys.path.append(str(Path.cwd()))  # a console script lacks it, and tools import the project's own packages
    pause_collections()
    code = _run_command(program, sys.argv[1:])
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C must not interrupt the exit
    threads = sys.modules.get("toolchat.tool_calling.threads")
    if threads is not None and not threads.stop_threads(1):
        # A tool still blocks a thread, for which Python would wait: measured with one that sleeps for 20 s and has a
        # limit of 1 s, the command ends after 5 s instead of 23. Threads of an executor cannot be daemons since 3.9.
        sys.stdout.flush()
        sys.stderr.flush()
        logging.shutdown()
        os._exit(code)
    return code


def _run_command(program: Program, typed: list[str]) -> int:
    try:
        # Not Click's `main`, whose exit code of Ctrl-C and of a closed pipe is 1, as that of a failure.
        with commands(program).make_context(program.command, typed) as context:
            return int(context.command.invoke(context))
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except ConfigurationError as error:
        for handler in logging.getLogger().handlers:  # what was logged before is read first
            handler.flush()
        click.echo("\n".join(f"toolchat: {line}" for line in str(error).splitlines()), err=True)
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader closed the pipe, as `head` does: without this, Python's flush at exit would fail once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
