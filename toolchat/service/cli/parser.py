"""The command line's arguments, help texts and examples."""

import argparse
import re
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from itertools import takewhile
from pathlib import Path
from typing import Any

from toolchat import __version__
from toolchat.service.cli.program import Program

_EXAMPLES = {
    "": """
  toolchat new-tool order_status           write a tool and its test
  toolchat serve                           serve over HTTP, configured by .env and the environment
  toolchat ask "Where is order A-1042?"    answer one question in the terminal
  toolchat COMMAND --help                  options and examples of a command

exit codes: 0 success; 1 a failure; 2 invalid configuration or command line; 3 a tool call needs approval""",
    "serve": """
  toolchat serve
  toolchat serve --host 0.0.0.0 --port 9000
  toolchat serve --workers 4
  toolchat serve --reload
  LOG_LEVEL=debug toolchat serve""",
    "demo": """
  toolchat demo
  toolchat demo --port 9000""",
    "ask": """
  toolchat ask "Where is order A-1042?"
  toolchat ask --json "Where is order A-1042?" 2>/dev/null
  echo "Where is order A-1042?" | toolchat ask -
  toolchat ask --background "Where is order A-1042?"
  toolchat ask --follow ID
  toolchat ask --tool refund --approve refund "Refund order A-1042"

The answer goes to standard output, tool calls go to standard error. If a tool requires approval, the terminal asks
first: y, n, n REASON, or edit. Without a terminal the call does not run, and the exit code is 3.""",
    "chat": """
  toolchat chat
  toolchat chat --tool order_status

Commands: /tools, /new, /save FILE, /help, /quit. The arrow keys recall earlier questions; Ctrl-C stops an answer.""",
    "tools": """
  toolchat tools list
  toolchat tools run order_status number=A-1042""",
    "tools run": """
  toolchat tools run order_status number=A-1042
  toolchat tools run order_status '{"number": "A-1042"}'
  toolchat tools run rollDice sides=20 labels:='["a", "b"]'

key=value is converted to the type in the tool's schema: days=2 becomes a number if the schema asks for one. key:=JSON
is always parsed as JSON. The result goes to standard output, progress goes to standard error; the exit code is 1 if the
tool fails. A tool that requires approval runs at once: running it here counts as approval.""",
    "new-tool": """
  toolchat new-tool air_quality
  toolchat new-tool air_quality --path ../our-tools

Nothing is overwritten. docs/tools.md explains what a package can declare.""",
    "check": """
  toolchat check
  toolchat check && toolchat serve

The exit code is 1 if one of them does not work.""",
    "mcp": """
  toolchat mcp
  TOOLS_PATH=/srv/shop/tools toolchat mcp

For MCP hosts that start a process; docs/mcp.md shows their configuration. Logs go to standard error.""",
    "keys": """
  toolchat keys new alice >> keys.toml

The key is shown only once, on standard error; its entry for API_KEYS_FILE goes to standard output.""",
    "state": """
  toolchat state export > state.jsonl
  STATE_URL=redis://localhost:6379/0 toolchat state import < state.jsonl
  toolchat state stats
  toolchat state vacuum

The commands work on the store that STATE_URL names, also while the service runs. An export contains conversations. An
import adds missing records and overwrites none.""",
    "audit": """
  toolchat audit export > decisions.jsonl
  toolchat audit export --from 2026-11-01 --tool refund

The command works on the store that STATE_URL names, also while the service runs.""",
    "person": """
  toolchat person export alice > alice.jsonl
  toolchat person delete open-webui~4f2c

The commands work on the store that STATE_URL names, also while the service runs. Decisions about calls stay.""",
}
"""Epilogs of the help texts, by command."""

_SERVE = "toolchat.service.cli.serve:serve"
_SERVER_OPTIONS = {
    "host": ("address to listen on (SERVER_HOST)", ("serve", "demo")),
    "port": ("port to listen on; 0 picks a free one (SERVER_PORT)", ("serve", "demo")),
    "workers": ("number of worker processes (SERVER_WORKERS)", ("serve",)),
    "reload": ("restart when the tools or other code in the directory change", ("serve",)),
}
"""Options that take precedence over a variable, each with its help and the commands that have it."""
_SUBCOMMANDS = {
    "tools": ("list", "run"),
    "keys": ("new",),
    "state": ("export", "import", "stats", "vacuum"),
    "audit": ("export",),
    "person": ("export", "delete"),
}
_GUESSES = {"start": "serve", "run": "serve or tools run", "-p": "--port"}
"""Words that users try instead of a command or an option whose name is not similar."""
_OPTION = re.compile(r"(?<![\w-])--[a-z]+")


def parse(program: Program, typed: Sequence[str]) -> argparse.Namespace:
    """Parse the command line.

    Exits with 0 after ``--help`` and ``--version``, and with 2 if an argument is not valid.

    Returns:
        The options of a command, which are the keyword arguments of its function, and ``run``: that function as
        ``module:name``, so that only the module of the chosen command is imported.
    """
    parser, commands = _parser(program)
    # argparse would report a mistake as an invalid choice or as unrecognized arguments, without a suggestion.
    words = [
        word for before, word in zip(["", *typed], typed, strict=False)
        if not word.startswith("-") and before.removeprefix("--") not in _SERVER_OPTIONS
    ]  # fmt: skip
    leading = [each.partition("=")[0] for each in takewhile(lambda each: each.startswith("-"), typed)]
    if leading:  # the argument of an unknown option would be reported as a command
        _refuse_unknown(parser, "option", leading, ["-h", *_OPTION.findall(parser.format_help())])
    nested = [f"{name} {each}" for name, below in _SUBCOMMANDS.items() for each in below]
    _refuse_unknown(parser, "command", words[:1], commands, [*commands, *nested, "--help", "--version"])
    command = commands[words[0]] if words else parser
    _refuse_server_options(parser, typed, words[0] if words else "serve")
    if words[:1] and words[0] in _SUBCOMMANDS:
        _refuse_unknown(parser, "command", words[1:2], _SUBCOMMANDS[words[0]])
    parsed, rest = parser.parse_known_args(typed)
    options = [each.partition("=")[0] for each in rest if each.startswith("-")]
    _refuse_unknown(parser, "option", options, _OPTION.findall(command.format_help()))
    if rest:
        parser.error(f"{rest[0]}: is one argument too many; put quotes around a text with spaces")
    for name in _SERVER_OPTIONS:
        if getattr(parsed, name) is None:  # it was not typed, or is not an option of this command
            delattr(parsed, name)
    return parsed


def _refuse_server_options(parser: argparse.ArgumentParser, typed: Sequence[str], command: str) -> None:
    for name, (_, commands) in _SERVER_OPTIONS.items():
        if command not in commands and any(each.partition("=")[0] == f"--{name}" for each in typed):
            parser.error(f"--{name} is an option of {' and '.join(commands)} only")


def _refuse_unknown(
    parser: argparse.ArgumentParser,
    kind: str,
    words: Sequence[str],
    known: Collection[str],
    elsewhere: Collection[str] = ("--help",),
) -> None:
    """Exit if a word is unknown, and suggest a similar known one, or what has this word in its name elsewhere."""
    for word in words:
        if word not in known:
            from toolchat.service.settings.typos import suggest

            namesakes = (name for name in elsewhere if word in re.split(r"\W", name))
            similar = _GUESSES.get(word) or suggest(word, known) or next(namesakes, None)
            others = f"known: {', '.join(known)}" if kind == "command" else "--help lists all"
            parser.error(f"there is no {kind} {word}; {f'did you mean {similar}?' if similar else others}")


def _parser(program: Program) -> tuple[argparse.ArgumentParser, Mapping[str, argparse.ArgumentParser]]:
    """Return the parser, and the parsers of its commands by name."""
    parser = argparse.ArgumentParser(prog=program.command)
    parser.add_argument("--version", action="version", version=f"toolchat {__version__}")
    _describe(parser, "", "Chat questions answered with live tools.", _SERVE)
    _add_server_options(parser, "serve", default=None)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")

    def command(name: str, run: str, summary: str) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=summary)
        _describe(added, name, _sentence(summary), f"toolchat.service.cli.{run}")
        return added

    _add_server_options(command("serve", "serve:serve", "serve over HTTP (the default)"), "serve")
    if program.sandbox is not None:
        demo = command("demo", "serve:serve", "serve with invented data, so that every tool works without a key")
        _add_server_options(demo, "demo")
        demo.set_defaults(demo=True)
    ask = command("ask", "conversation:ask", "ask one question and print the answer as it arrives")
    _add_ask(ask)
    chat = command("chat", "conversation:chat", "hold a conversation in the terminal")
    _add_dialogue(chat)
    tools = command("tools", "tools:list_tools", "list the tools, or run one without a model")
    below = _add_tools(tools)
    _add_new_tool(command("new-tool", "new_tool:create_tool", "write a tool package and its test"))
    command("check", "check:check", "send one request to each configured upstream")
    command("mcp", "mcp_stdio:serve_stdio", "serve MCP over standard input and output")
    _add_keys(command("keys", "keys:create_key", "create an API key"))
    _add_state(command("state", "state:stats", "export, import, count or compact the stored data"))
    _add_audit(command("audit", "audit:export", "export the decisions about calls"))
    _add_person(command("person", "person:export", "export or delete what is stored for one person"))
    if program.sandbox is not None:
        for each in (ask, chat, tools):
            _add_demo(each)
        for each in below:
            _add_demo(each, default=argparse.SUPPRESS)  # keeps a --demo that was typed before the word run
    for each in (parser, *commands.choices.values(), *below):
        each.epilog = each.epilog and each.epilog.replace("toolchat ", f"{program.command} ")
    return parser, commands.choices


def _describe(parser: argparse.ArgumentParser, name: str, description: str, run: str) -> None:
    parser.description = description
    parser.epilog = f"examples:{_EXAMPLES[name]}"
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.set_defaults(run=run)


def _add_server_options(parser: argparse.ArgumentParser, command: str, default: object = argparse.SUPPRESS) -> None:
    # SUPPRESS keeps an option that was typed before the command.
    for name, (text, commands) in _SERVER_OPTIONS.items():
        if command in commands:
            kind: dict[str, Any] = {"action": "store_true"} if name == "reload" else {"metavar": name.upper()}
            parser.add_argument(f"--{name}", default=default, help=text, **kind)


def _add_ask(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", nargs="?", help="the question; with - or a pipe, it is read from standard input")
    parser.add_argument("--json", action="store_true", help="print the answer with its tool calls as JSON")
    text = "leave the question to the running service, and print its id"
    parser.add_argument("--background", action="store_true", help=text)
    parser.add_argument("--follow", default="", metavar="ID", help="print the answer to a background question")
    _add_dialogue(parser)


def _add_dialogue(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--tool", action="append", metavar="NAME", help="offer only this tool; may be repeated")
    parser.add_argument(
        "--approve", action="append", default=[], metavar="NAME", help="approve all calls of this tool; may be repeated"
    )
    _add_tenant(parser)


def _add_tools(parser: argparse.ArgumentParser) -> Sequence[argparse.ArgumentParser]:
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    text = "list the tools (the default)"
    listing = commands.add_parser("list", help=text, description=_sentence(text))
    run = commands.add_parser("run", help="run one tool without a model")
    _describe(
        run,
        "tools run",
        "Run one tool like a model's call, but without a model.",
        "toolchat.service.cli.tools:run_tool",
    )
    run.add_argument("name", help="name of the tool, as listed by toolchat tools list")
    run.add_argument(
        "arguments",
        nargs="*",
        metavar="key=value",
        help="an argument; or key:=JSON, or one JSON object with all arguments",
    )
    run.add_argument("--json", action="store_true", help="print the call with its outcome and duration as JSON")
    _add_tenant(run)
    return listing, run


def _add_new_tool(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", help="name of the package and of its tool, such as air_quality")
    parser.add_argument(
        "--path",
        type=Path,
        metavar="DIR",
        help="folder to write to; default: the first folder of TOOLS_PATH, else ./tools",
    )


def _add_tenant(parser: argparse.ArgumentParser) -> None:
    text = "tenant that tools read, like the header X-Tenant-ID"
    parser.add_argument("--tenant", type=_tenant, default="", metavar="NAME", help=text)


def _add_demo(parser: argparse.ArgumentParser, default: object = False) -> None:
    text = "replace the tools' upstreams with a sandbox of invented data"
    parser.add_argument("--demo", action="store_true", default=default, help=text)


def _add_keys(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    new = commands.add_parser("new", help="create a key", description="Create a key.")
    new.add_argument("name", help="name of the principal, as shown in logs and metrics")


def _add_state(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, function, text in (
        ("export", "export", "write all records to standard output, one JSON object per line"),
        ("import", "import_", "store the records of standard input"),
        ("stats", "stats", "show the number of records of each kind"),
        ("vacuum", "vacuum", "return the unused space of the file to the disk"),
    ):
        commands.add_parser(name, help=text, description=_sentence(text)).set_defaults(
            run=f"toolchat.service.cli.state:{function}"
        )


def _add_audit(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    text = "write who decided what about which call to standard output, one JSON object per line"
    export = commands.add_parser("export", help=text, description=_sentence(text))
    for name, field in (("from", "begin"), ("to", "end")):
        export.add_argument(f"--{name}", dest=field, type=_time, metavar="TIME", help="time of ISO 8601, in UTC")
    for name in ("tenant", "tool"):
        export.add_argument(f"--{name}", default="", metavar="NAME", help=f"only decisions for this {name}")


def _add_person(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, text in (
        ("export", "write all that is stored for a person to standard output, one JSON object per line"),
        ("delete", "delete all that is stored for a person, except for the record of decisions"),
    ):
        added = commands.add_parser(name, help=text, description=_sentence(text))
        added.add_argument("name", help="name of the principal as in logs: a key, or key~person")
        added.set_defaults(run=f"toolchat.service.cli.person:{name}")


def _time(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError("must be a date or a time such as 2026-11-01T09:30:00") from None


def _sentence(summary: str) -> str:
    return f"{summary[0].upper()}{summary[1:]}."


def _tenant(text: str) -> str:
    from toolchat.service.access.principals import TENANT_PATTERN

    if text and not re.fullmatch(TENANT_PATTERN, text):
        raise argparse.ArgumentTypeError("must be 1 to 64 letters, digits, hyphens and underscores")
    return text
