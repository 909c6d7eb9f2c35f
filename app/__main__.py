"""The command line: ``python -m app``, which is also installed as ``toolchat``."""

import argparse
import gc
import io
import logging
import os
import signal
import sys
from collections.abc import Sequence

from app.cli.parser import parse
from app.cli.startup_signals import StoppedEarly
from toolchat.errors import ConfigurationError

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    Returns:
        The exit code: 0; 1 when something failed, such as a question that could not be answered; 2 when the set-up
        does not allow a start; 3 when an answer waits for an approval that nobody is there to give.
    """
    _replace_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    parsed = parse(arguments)
    # While modules load there is nothing to collect, and looking costs a tenth of the start; it is turned on later.
    gc.disable()
    code = _run(parsed)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it ends already
    _leave_threads_behind(code)
    return code


def _replace_closed_streams() -> None:
    """Where standard output or error was closed before the start, let them go nowhere: nothing could be said at all."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: PTH123, SIM115 - for as long as the process lasts


def _run(parsed: argparse.Namespace) -> int:
    try:
        return int(parsed.run(parsed))
    except ConfigurationError as error:
        print("\n".join(f"toolchat: {line}" for line in str(error).splitlines()), file=sys.stderr)  # noqa: T201
        return 2
    except KeyboardInterrupt:
        return 130
    except StoppedEarly:
        print("toolchat: stopped before it listened", file=sys.stderr)  # noqa: T201
        return 0
    except BrokenPipeError:
        # Whoever read the output has had enough; standard output must not be flushed into the void at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141


def _leave_threads_behind(code: int) -> None:
    """End even though a tool still blocks a thread, which Python would wait for and cannot stop."""
    threads = sys.modules.get("toolchat.tool_calling.threads")
    if threads is not None and not threads.stop_threads(1):
        sys.stdout.flush()
        sys.stderr.flush()
        logging.shutdown()
        os._exit(code)


if __name__ == "__main__":
    sys.exit(main())
