"""The command line: ``python -m app``, which is also installed as ``toolchat``."""

import gc
import io
import os
import sys
from collections.abc import Sequence

from app.commands.arguments import parse
from app.errors import ConfigurationError

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    Returns:
        The exit code: 0; 1 when something failed, such as a question that could not be answered; 2 when the set-up
        does not allow a start; 3 when an answer waits for an approval that nobody is there to give.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    parsed = parse(arguments)
    # While modules load there is nothing to collect, and looking costs a tenth of the start; it is turned on later.
    gc.disable()
    try:
        return int(parsed.run(parsed))
    except ConfigurationError as error:
        print("\n".join(f"toolchat: {line}" for line in str(error).splitlines()), file=sys.stderr)  # noqa: T201
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever read the output has had enough; standard output must not be flushed into the void at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141


if __name__ == "__main__":
    sys.exit(main())
