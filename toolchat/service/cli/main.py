"""The command line: parses the arguments and runs one command."""

import argparse
import io
import logging
import os
import signal
import sys
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from toolchat.errors import ConfigurationError
from toolchat.service.cli.parser import parse
from toolchat.service.cli.program import Program
from toolchat.service.cli.serve import StoppedEarly
from toolchat.service.server.process_memory import pause_collections


def run(program: Program = Program()) -> int:
    """Run the command that the process was started with.

    Args:
        program: the application; by default there is none, and ``TOOLS_PATH`` names all tools.

    Returns:
        The exit code: 0; 1 on failure, such as a question that could not be answered; 2 if the configuration or the
        command line is invalid; 3 if a tool call needs approval and no terminal is attached.
    """
    with _open_streams():
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")
        if find_spec("fastapi") is None:
            print("toolchat: the service is not installed: pip install 'toolchat[service]'", file=sys.stderr)  # noqa: T201
            return 2
        sys.path.append(str(Path.cwd()))  # a console script lacks it, and tools import the project's own packages
        parsed = parse(program, sys.argv[1:])
        pause_collections()
        code = _run_command(program, parsed)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C must not interrupt the exit
        _abandon_threads(code)
        return code


def _open_streams() -> ExitStack:
    """Replace each standard stream that was closed before the start, which is ``None``, by the null device."""
    stack = ExitStack()
    for stream, redirect in ((sys.stdout, redirect_stdout), (sys.stderr, redirect_stderr)):
        if stream is None:
            stack.enter_context(redirect(open(os.devnull, "w")))  # noqa: PTH123, SIM115 - open until the process exits
    return stack


def _run_command(program: Program, parsed: argparse.Namespace) -> int:
    options = vars(parsed)
    module, _, function = options.pop("run").partition(":")
    is_demo = options.pop("demo", False)
    try:
        with ExitStack() as stack:
            if is_demo and program.sandbox is not None:
                os.environ["SANDBOX_URL"] = stack.enter_context(program.sandbox())
                os.environ["SERVER_WORKERS"] = "1"  # the sandbox is a thread of this process
            return int(getattr(import_module(module), function)(program, **options))
    except ConfigurationError as error:
        for handler in logging.getLogger().handlers:  # what was logged before is read first
            handler.flush()
        print("\n".join(f"toolchat: {line}" for line in str(error).splitlines()), file=sys.stderr)  # noqa: T201
        return 2
    except KeyboardInterrupt:
        return 130
    except StoppedEarly:
        print("toolchat: stopped during startup", file=sys.stderr)  # noqa: T201
        return 0
    except BrokenPipeError:
        # The reader closed the pipe, as `head` does: without this, Python's flush at exit would fail once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141


def _abandon_threads(code: int) -> None:
    """Exit although a tool still blocks a thread; Python cannot stop such a thread and would wait for it."""
    threads = sys.modules.get("toolchat.tool_calling.threads")
    if threads is not None and not threads.stop_threads(1):
        sys.stdout.flush()
        sys.stderr.flush()
        logging.shutdown()
        os._exit(code)
