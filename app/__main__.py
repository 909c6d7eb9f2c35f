"""The command line: ``python -m app``."""

import argparse
import gc
import io
import logging
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from importlib import import_module

from toolchat.errors import ConfigurationError
from toolchat.service.cli.parser import parse
from toolchat.service.cli.serve import StoppedEarly


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    Returns:
        The exit code: 0; 1 on failure, such as a question that could not be answered; 2 if the configuration or the
        command line is invalid; 3 if a tool call needs approval and no terminal is attached.
    """
    with _open_streams():
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")
        parsed = parse(arguments)
        # Imports create no garbage, but collections take a tenth of the start time; each command enables them later.
        gc.disable()
        code = _run(parsed)
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


def _run(parsed: argparse.Namespace) -> int:
    options = vars(parsed)
    module, _, function = options.pop("run").partition(":")
    try:
        return int(getattr(import_module(module), function)(**options))
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


if __name__ == "__main__":
    sys.exit(main())
