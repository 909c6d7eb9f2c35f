"""What can be typed behind ``toolchat``."""

import argparse
import sys
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from app.cli import commands as starting
from toolchat import __version__

__all__ = ["EXAMPLES", "parse"]


EXAMPLES = {
    "": """
  toolchat serve                              serve over HTTP; .env and the environment set it up
  toolchat ask "What time is it in Tokyo?"    one question, answered here
  toolchat COMMAND --help                     what a command takes, with examples

exit codes: 0; 1 something failed; 2 the set-up or what was typed is wrong; 3 an answer waits for approval""",
    "serve": """
  toolchat serve
  toolchat serve --workers 4
  SERVER_PORT=9000 LOG_LEVEL=debug toolchat serve""",
    "demo": """
  toolchat demo""",
    "ask": """
  toolchat ask "What time is it in Tokyo?"
  toolchat ask --json "东京现在几点？" 2>/dev/null
  echo "Translate into French: good morning" | toolchat ask -
  toolchat ask --demo "What is the weather in Paris tomorrow?"
  toolchat ask --tool switchLight --approve switchLight "Light on"

The answer goes to standard output, what the tools did to standard error. A tool that needs approval is asked about
in a terminal: y, n, n and a reason, or edit. Elsewhere the exit code is 3.""",
    "chat": """
  toolchat chat
  toolchat chat --demo --tool getCityTimeFunction

Within: /tools, /new, /save FILE, /help, /quit. The arrow keys bring earlier questions back; Ctrl-C stops an answer.""",
    "tools": """
  toolchat tools
  toolchat tools run getCityTimeFunction timeZoneId=Asia/Tokyo
  toolchat tools run --demo getWeatherFunction city=Paris days=2""",
    "tools run": """
  toolchat tools run getCityTimeFunction timeZoneId=Asia/Tokyo
  toolchat tools run --demo getWeatherFunction '{"city": "Paris", "days": 2}'
  toolchat tools run rollDice sides=20 labels:='["a", "b"]'

A value is read as the tool's schema says: days=2 is a number where it asks for one. key:=JSON is read as JSON in any
case. The result goes to standard output, progress to standard error; the exit code is 1 where the tool fails. A tool
that needs approval runs at once: who runs it by hand has decided.""",
    "check": """
  toolchat check
  toolchat check && toolchat serve

Asks each upstream that is set up one question; the exit code is 1 where one does not answer as it should.""",
    "mcp": """
  toolchat mcp
  WEATHER_API_KEY=... toolchat mcp

For MCP hosts that start a process; docs/mcp.md has what they are configured by. Logs go to standard error.""",
    "keys": """
  toolchat keys new alice >> keys.toml

The key goes to standard error, shown this once; the entry for API_KEYS_FILE to standard output.""",
    "eval": """
  toolchat eval docs/eval-example.yaml --demo
  toolchat eval questions.yaml --times 3 --json today.json
  toolchat eval questions.yaml --baseline yesterday.json --at-least 0.95 --junit report.xml

The questions' form: docs/command-line.md.""",
}
"""By the words that are typed."""


Run = Callable[[argparse.Namespace], int]


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line; ``run`` of what is returned runs the command and gives its exit code.

    Exits with 0 after ``--help`` and ``--version``, with 2 where something cannot be understood.
    """
    given = sys.argv[1:] if arguments is None else arguments
    parser, commands = _parser()
    before = ["", *given]
    words = [
        each for flag, each in zip(before, given, strict=False) if not each.startswith("-") and flag != "--workers"
    ]
    _refuse_unknown(parser, words[:1], commands)
    _refuse_unknown(parser, words[1:2] if words[:1] == ["tools"] else (), ("run",))
    parsed = parser.parse_args(given)
    if parsed.workers is not None and parsed.run is not starting.serve:
        parser.error("--workers is for serve alone")
    return parsed


def _refuse_unknown(parser: argparse.ArgumentParser, word: Sequence[str], known: Collection[str]) -> None:
    for each in word:
        if each not in known:
            from app.settings.typos import suggest

            near = suggest(each, known)
            parser.error(
                f"there is no command {each}; " + (f"did you mean {near}?" if near else f"known: {', '.join(known)}")
            )


def _parser() -> tuple[argparse.ArgumentParser, Collection[str]]:
    """The parser, and the names of the commands that it knows."""
    parser = argparse.ArgumentParser(prog="toolchat")
    parser.add_argument("--version", action="version", version=f"toolchat {__version__}")
    _describe(parser, "", "Chat questions answered with live tools.", starting.serve)
    _add_workers(parser)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")

    def command(name: str, run: Run, told: str) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=told)
        _describe(made, name, f"{told[0].upper()}{told[1:]}.", run)
        return made

    _add_workers(command("serve", starting.serve, "serve over HTTP (the default)"), default=argparse.SUPPRESS)
    command("demo", starting.demo, "serve with invented tool data, so that every tool works without a key")
    _add_ask(command("ask", starting.ask, "ask one question and print the answer as it comes"))
    _add_dialogue(command("chat", starting.chat, "hold a conversation in the terminal"))
    _add_tools(command("tools", starting.tools, "list the tools, and why others are not there; run one by hand"))
    command("check", starting.check, "ask every upstream that is set up one question: what works, what is missing")
    _add_eval(
        command("eval", starting.evaluate, "ask the questions of a file, and count the tool calls that are right")
    )
    command("mcp", starting.mcp, "speak MCP over standard input and output, for hosts that start a process")
    _add_keys(command("keys", starting.new_key, "make a key for somebody who may ask"))
    return parser, commands.choices


def _describe(parser: argparse.ArgumentParser, name: str, description: str, run: Run) -> None:
    parser.description = description
    parser.epilog = f"examples:{EXAMPLES[name]}"
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.set_defaults(run=run)


def _add_workers(parser: argparse.ArgumentParser, default: object = None) -> None:
    told = "processes that answer, of serve alone; more than one needs REDIS_URL (SERVER_WORKERS)"
    parser.add_argument("--workers", metavar="N", default=default, help=told)


def _add_ask(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", nargs="?", help="the question; - reads it from standard input, as a pipe does")
    parser.add_argument("--json", action="store_true", help="print the whole answer as JSON")
    _add_dialogue(parser)


def _add_dialogue(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--tool", action="append", metavar="NAME", help="offer only this tool; may be repeated")
    parser.add_argument(
        "--approve", action="append", default=[], metavar="NAME", help="run this tool without asking; may be repeated"
    )
    _add_demo(parser)


def _add_tools(parser: argparse.ArgumentParser) -> None:
    _add_demo(parser)
    run = parser.add_subparsers(title="commands", metavar="run").add_parser("run", help="run one tool by hand")
    _describe(
        run, "tools run", "Run one tool by hand, as a model's call would be; no model is asked.", starting.run_tool
    )
    run.add_argument("name", help="the tool's name, as toolchat tools lists it")
    run.add_argument("arguments", nargs="*", metavar="key=value", help="also key:=JSON, or one JSON object with all")
    run.add_argument("--json", action="store_true", help="print the whole call as JSON")
    _add_demo(run, default=argparse.SUPPRESS)  # which leaves what was given before the word run


def _add_demo(parser: argparse.ArgumentParser, default: object = False) -> None:
    told = "let a sandbox invent what the tools' upstreams would say"
    parser.add_argument("--demo", action="store_true", default=default, help=told)


def _add_eval(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, help="the questions, as YAML or JSON")
    parser.add_argument("--times", type=_positive, default=1, metavar="N", help="ask each question so often")
    parser.add_argument("--at-once", type=_positive, default=1, metavar="N", help="so many questions side by side")
    parser.add_argument("--baseline", type=Path, metavar="FILE", help="compare with an earlier result of --json")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result as JSON")
    parser.add_argument("--junit", type=Path, metavar="FILE", help="write the result as JUnit's XML")
    parser.add_argument(
        "--at-least", type=_share, metavar="SHARE", help="exit with 1 where less is right, such as 0.95"
    )
    _add_demo(parser)


def _add_keys(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", choices=["new"], help="make a key")
    parser.add_argument("name", help="the principal that it names, in logs and in figures")


def _positive(text: str) -> int:
    number = int(text)
    if not 1 <= number <= 1000:
        raise argparse.ArgumentTypeError("must be 1 to 1000")
    return number


def _share(text: str) -> float:
    share = float(text)
    if not 0 <= share <= 1:
        raise argparse.ArgumentTypeError("must be 0 to 1")
    return share
