"""What ``docs/configuration.md`` must say, by the settings classes; run as a module, it writes the page."""

import re
from typing import Any

from scripts.env_example import default_of, grouped_variables
from scripts.setting_groups import APPROVALS, GROUPS, PROVIDERS, SWITCHES
from tests.command_line import ROOT
from toolchat.service.settings.base import EnvironmentSettings
from toolchat.service.tool_modules.sources import ToolsPathSettings

PAGE = ROOT / "docs" / "configuration.md"
BESIDE = {PROVIDERS: ROOT / "docs" / "endpoints.md", APPROVALS: ROOT / "docs" / "approvals.md"}
"""The groups whose variables are on another page."""
_TABLE = re.compile(r"(?<=<!-- Written by `make docs`. -->\n\n)(?:\|.*\n)+")

HEAD = """\
# Configuration

Set environment variables, or write them into a file `.env` in the working directory; the environment takes precedence.
[`.env.example`](../.env.example) lists all variables, ready to be copied.

Variables are read once, at start. An invalid value stops the start with one line that names the variable. A time limit
that another one makes ineffective, such as a `TOOL_TIMEOUT` above `REQUEST_TIMEOUT`, is reported as a warning. An empty
variable counts as not set.

A secret may be in a file instead, as Docker, Kubernetes and systemd hand it over: `NAME_FILE` has the path of the file
with the value of `NAME`, for every key, password and URL with a password, such as `OPENAI_API_KEY_FILE` or
`STATE_URL_FILE`. White space around the value is stripped. Setting both stops the start. After SIGHUP the files are
read again: keys of models and tools, `APPROVALS_WEBHOOK_SECRET` and `PEOPLE_JWT_SECRET` are used at once; for any other
that has changed, the log asks for a restart. If a file is not valid, or not a regular file, the old
values stay.

Variables of other programs, such as `TZ` and those of
[outbound proxies and certificates](running.md#outbound-proxies-and-certificates), may be in `.env` as well. The file
is UTF-8, and `${X}` in it stands for the variable `X`.

With `CHAT_PROVIDER=auto`, the chat model is the first of these:

1. DashScope, if `DASHSCOPE_API_KEY` is set.
2. The OpenAI-compatible provider, if `OPENAI_API_KEY` or `OPENAI_BASE_URL` is set. A server without keys, such as
   Ollama or vLLM, needs only the latter.
3. The [offline model](offline-model.md), if only this machine can connect: `SERVER_HOST` is a loopback address, and no
   API keys, tokens or proxies are configured. Otherwise the start fails. To let the offline model answer other clients,
   set `CHAT_PROVIDER` to `offline` or `auto_or_offline`.

Described elsewhere: the variables of the example's [weather and translation](endpoints.md#weather-and-translation),
those of [approvals](approvals.md#notify-approvers), and those of
[your own tool modules](tools.md#settings-clients-and-routes).

<!-- Written by `make docs` from the settings classes. -->
"""

TRACES = """\
## Traces

`OTEL_EXPORTER_OTLP_ENDPOINT` turns [traces](monitoring.md#traces) on. All other variables are OpenTelemetry's own, for
[its SDK](https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/) and
[its exporter](https://opentelemetry.io/docs/specs/otel/protocol/exporter/). In toolchat, the default of
`OTEL_SERVICE_NAME` is `toolchat`, and that of `OTEL_PROPAGATORS` is `tracecontext`. `OTEL_TRACES_EXPORTER` is `otlp` or
`none`; the protocol is `http/protobuf` or `grpc`.
"""

_BOUNDS = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
_KINDS = {"boolean": "`true` or `false`", "integer": "whole number", "number": "number", "string": "text",
          "array": "texts, separated by commas"}  # fmt: skip


def render() -> str:
    """The whole page: a chapter for each group, a row for each variable."""
    chapters = [_chapter(title, rows) for title, rows in grouped_variables().items() if title not in BESIDE]
    return "\n".join([HEAD, *chapters, TRACES])


def render_beside(title: str) -> str:
    """Another page with its table of a group's variables."""
    rows = [_row(name, *where) for name, where in grouped_variables()[title].items()]
    table = "".join(f"{line}\n" for line in (*_HEADER, *rows))
    return _TABLE.sub(lambda _: table, BESIDE[title].read_text(encoding="utf-8"))


def _chapter(title: str, rows: dict[str, tuple[type[EnvironmentSettings], str]]) -> str:
    lines = [_row(name, *where) for name, where in rows.items() if name not in SWITCHES[1:]]
    return "\n".join([f"## {title}", "", GROUPS[title][0], "", *_HEADER, *lines, ""])


_HEADER = ["| variable | default | values | meaning |", "| --- | --- | --- | --- |"]


def _row(name: str, cls: type[EnvironmentSettings], field: str) -> str:
    default = default_of(cls, field)
    shown = f"`{default}`" if default else ""
    names = ", ".join(f"`{each}`" for each in (SWITCHES if name in SWITCHES else (name,)))
    return f"| {names} | {shown} | {_values(cls, field)} | {cls.model_fields[field].description} |"


def _values(cls: type[EnvironmentSettings], field: str) -> str:
    """Which values a variable takes, in words."""
    schema: dict[str, Any] = cls.model_json_schema(by_alias=False)["properties"][field]
    (schema,) = [each for each in schema.get("anyOf", [schema]) if each.get("type") != "null"]
    if "enum" in schema:
        return ", ".join(f"`{each}`" for each in schema["enum"])
    if "$ref" in schema:
        return "JSON object"
    if cls is ToolsPathSettings:
        return "texts, separated by :"
    bounds = [f"{sign} {schema[word]:.10g}" for word, sign in _BOUNDS.items() if word in schema]
    return ", ".join([_KINDS[schema["type"]], *bounds])


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
    for title, page in BESIDE.items():
        page.write_text(render_beside(title), encoding="utf-8")
