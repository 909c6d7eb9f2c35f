"""The command line: ``python -m app`` with ``serve``, ``demo``, ``ask`` and ``tools``."""

import argparse
import gc
import io
import os
import sys
from collections.abc import Sequence

from app.errors import ConfigurationError
from app.version import VERSION

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    Returns:
        The exit code: 0; 1 when a question could not be answered; 2 when the set-up does not allow a start.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    parsed = _parser().parse_args(arguments)
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


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="toolchat", description="Chat questions answered with live tools.")
    parser.add_argument("--version", action="version", version=f"toolchat {VERSION}")
    parser.set_defaults(run=_serve)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    commands.add_parser("serve", help="serve over HTTP (the default)").set_defaults(run=_serve)
    demo = commands.add_parser("demo", help="serve with invented tool data, so that every tool works without a key")
    demo.set_defaults(run=_demo)
    ask = commands.add_parser("ask", help="ask one question and print the answer as it comes, then the tool calls")
    ask.add_argument("query", help="the question")
    ask.add_argument("--tool", action="append", metavar="NAME", help="offer only this tool; may be repeated")
    ask.add_argument("--json", action="store_true", help="print the whole answer as JSON")
    ask.set_defaults(run=_ask)
    commands.add_parser("tools", help="list the tools, and why others are not there").set_defaults(run=_tools)
    return parser


def _serve(_: argparse.Namespace) -> int:
    # While modules load there is nothing to collect, and looking costs a tenth of the start; the server turns it on.
    gc.disable()
    from app.server import serve

    return serve()


def _demo(_: argparse.Namespace) -> int:
    gc.disable()
    from app.server import demo

    return demo()


def _ask(parsed: argparse.Namespace) -> int:
    from app.commands import ask

    return ask(parsed.query, tools=parsed.tool, as_json=parsed.json)


def _tools(_: argparse.Namespace) -> int:
    from app.commands import list_tools

    return list_tools()


if __name__ == "__main__":
    sys.exit(main())
