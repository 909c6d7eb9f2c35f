"""The commands with their options, help texts and examples; a command's module is imported when it runs."""

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import click

from toolchat import __version__
from toolchat.service.cli import Program

_EXAMPLES: Final[Mapping[str, str]] = {
    "": """
  toolchat new-tool order_status           write a tool and its test
  toolchat serve                           serve over HTTP, configured by .env and the environment
  toolchat ask "Where is order A-1042?"    answer one question in the terminal
  toolchat COMMAND --help                  options and examples of a command

exit codes: 0 success; 1 a failure; 2 invalid configuration or command line; 3 a tool call needs approval""",
    "serve": """
  toolchat serve --host 0.0.0.0 --port 9000
  toolchat serve --workers 4
  LOG_LEVEL=debug toolchat serve --reload""",
    "ask": """
  toolchat ask --json "Where is order A-1042?" 2>/dev/null
  echo "Where is order A-1042?" | toolchat ask -
  toolchat ask --tool refund --approve refund "Refund order A-1042"

The answer goes to standard output, tool calls go to standard error. If a tool requires approval, the terminal asks
first: y, n, n REASON, or edit JSON. Without a terminal the call does not run, and the exit code is 3.""",
    "tools run": """
  toolchat tools run order_status number=A-1042
  toolchat tools run order_status '{"number": "A-1042"}'
  toolchat tools run rollDice sides=20 labels:='["a", "b"]'

key=value is converted to the type in the tool's schema; key:=JSON is always parsed as JSON. The exit code is 1 if the
tool fails. A tool that requires approval runs at once: running it here counts as approval.""",
    "state": """
  toolchat state export > state.jsonl
  STATE_URL=redis://localhost:6379/0 toolchat state import < state.jsonl

The store is the one that STATE_URL names. An export contains conversations; an import overwrites nothing.""",
}


def _tenant(_: click.Context, __: click.Parameter, value: str) -> str:
    from toolchat.service.access.principals import TENANT_PATTERN

    if value and not re.fullmatch(TENANT_PATTERN, value):
        raise click.BadParameter("must be 1 to 64 letters, digits, hyphens and underscores")
    return value


def _option(name: str, text: str, **more: Any) -> click.Option:
    return click.Option(name.split(), help=text, **more)


_DEMO = _option("--demo", "Replace the tools' upstreams with a sandbox of invented data.", is_flag=True)
_JSON = _option("--json", "Print the whole result as JSON.", is_flag=True)
_NAME = click.Argument(["name"])
_PERSON = click.Argument(["name"], metavar="KEY[~PERSON]")
_APPROVAL = click.Argument(["identifier"], metavar="ID")
_REASON = _option("--reason", "Tells the model why.", default="", metavar="TEXT")
_URL = _option("--url", "Address of the service; default: this machine, at SERVER_PORT.", default="", metavar="URL")
_TENANT = _option("--tenant", "Tenant that tools read, like X-Tenant-ID.", metavar="NAME", default="", callback=_tenant)
_DIALOGUE = (
    _option("--tool", "Offer only this tool; may be repeated.", metavar="NAME", multiple=True),
    _option("--approve", "Approve all calls of this tool; may be repeated.", metavar="NAME", multiple=True),
    _TENANT,
)
_ADDRESS = (
    _option("--host", "Address to listen on (SERVER_HOST)."),
    _option("--port", "Port to listen on; 0 picks a free one (SERVER_PORT)."),
)
_PROCESSES = (
    _option("--workers", "Number of worker processes (SERVER_WORKERS)."),
    _option("--reload", "Restart when the tools or other code in the directory change.", is_flag=True),
)
_TIME = click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%S%z"])
_SELECTION = (
    *(_option(name, "Time of ISO 8601, in UTC.", type=_TIME, metavar="TIME") for name in ("--from begin", "--to end")),
    *(_option(name, "Only these decisions.", default="", metavar="NAME") for name in ("--tenant", "--tool")),
)
_FOLDER = _option("--path", "Folder; default: the first of TOOLS_PATH, else ./tools.", type=click.Path(path_type=Path))
_WORDS = click.Argument(["words"], nargs=-1, metavar="QUESTION")
_ARGUMENTS = click.Argument(["arguments"], nargs=-1, metavar="[KEY=VALUE]...")
_COMMANDS: Final[Mapping[str, tuple[str, str, Sequence[click.Parameter]]]] = {
    "serve": ("serve:serve", "Serve over HTTP (the default).", (*_ADDRESS, *_PROCESSES)),
    "demo": ("serve:serve", "Serve with invented data, so that every tool works without a key.", _ADDRESS),
    "ask": ("dialogue:ask", "Ask one question and print the answer as it arrives.", (_WORDS, _JSON, *_DIALOGUE)),
    "chat": ("dialogue:chat", "Hold a conversation in the terminal.", _DIALOGUE),
    "tools list": ("tools:list_tools", "List the tools (the default).", ()),
    "tools run": ("tools:run_tool", "Run one tool without a model.", (_NAME, _ARGUMENTS, _JSON, _TENANT)),
    "new-tool": ("new_tool:create_tool", "Write a tool package and its test.", (_NAME, _FOLDER)),
    "check": ("check:check", "Send one request to each configured upstream.", ()),
    "mcp": ("serve:serve_mcp", "Serve MCP over standard input and output, for hosts that start a process.", ()),
    "keys new": ("keys:create_key", "Print a new API key, and its entry for API_KEYS_FILE.", (_NAME,)),
    "state export": ("state:export", "Write all records to standard output, one JSON object per line.", ()),
    "state import": ("state:import_", "Store the records of standard input.", ()),
    "state stats": ("state:stats", "Show the number of records of each kind.", ()),
    "state vacuum": ("state:vacuum", "Return the unused space of the file to the disk.", ()),
    "approvals list": ("approvals:list_waiting", "List what waits (the default).", (_URL,)),
    "approvals show": ("approvals:show", "Show one: its calls and its question, or the decision.", (_APPROVAL, _URL)),
    "approvals approve": ("approvals:approve", "Approve all its calls, and print the answer.", (_APPROVAL, _URL)),
    "approvals reject": ("approvals:reject", "Reject all its calls, and print the answer.", (_APPROVAL, _REASON, _URL)),
    "audit export": ("state:audit", "Write who decided what about which call, as JSON lines.", _SELECTION),
    "person export": ("state:person_export", "Write all that is stored for a person, as JSON lines.", (_PERSON,)),
    "person delete": ("state:person_delete", "Delete it, except for the record of decisions.", (_PERSON,)),
}
_GROUPS: Final = {
    "": "Chat questions answered with live tools.",
    "tools": "List the tools, or run one without a model.",
    "keys": "Create an API key.",
    "state": "Export, import, count or compact the stored data.",
    "approvals": "List and decide what waits at a running service, with the key in TOOLCHAT_API_KEY.",
    "audit": "Export the decisions about calls from the store that STATE_URL names.",
    "person": "Export or delete what the store that STATE_URL names has of one person.",
}
_WITH_SANDBOX: Final = ("ask", "chat", "tools list", "tools run")


class Commands(click.Group):
    """Keeps the order of its commands, and runs the default one if none is typed."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(self.commands)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        default = {"": ["serve"], "tools": ["list"], "approvals": ["list"]}.get(self.name or "", [])
        is_command = args and (not args[0].startswith("-") or args[0] in ("--help", "--version"))
        return super().parse_args(ctx, args if is_command else [*default, *args])


def commands(program: Program) -> Commands:
    """Return the command line; the options of a command are the arguments of its function."""
    groups = {name: Commands(name, help=text, epilog=_epilog(program, name)) for name, text in _GROUPS.items()}
    for path, (target, text, parameters) in _COMMANDS.items():
        above, _, name = path.rpartition(" ")
        if path == "demo" and not program.sandbox:
            continue
        more = [_DEMO] if program.sandbox and path in _WITH_SANDBOX else []
        run = partial(_run, program, target, demo=path == "demo")
        made = click.Command(name, callback=run, params=[*parameters, *more], help=text, epilog=_epilog(program, path))
        made.ignore_unknown_options = _APPROVAL in parameters  # an id may begin with a hyphen
        groups[above].add_command(made)
        if above:
            groups[""].add_command(groups[above])
    return click.version_option(__version__, prog_name="toolchat")(groups[""])


def _run(program: Program, target: str, *, demo: bool, **options: Any) -> int:
    module, _, function = target.partition(":")
    with program.sandbox() if demo and program.sandbox else nullcontext() as url:
        if url:
            os.environ |= {"SANDBOX_URL": url, "SERVER_WORKERS": "1"}  # the sandbox is a thread of this process
        return int(getattr(import_module(f"toolchat.service.cli.{module}"), function)(program, **options))


def _epilog(program: Program, name: str) -> str | None:
    text = _EXAMPLES.get(name, "").replace("toolchat ", f"{program.command} ")
    return f"\b\nexamples:{text}" if text else None  # \b keeps Click from joining the lines
