"""What ``docs/configuration.md`` must say, by the settings classes; run as a module, it writes the page."""

import re
from typing import Any

from app.settings.base import EnvironmentSettings
from tests.command_line import ROOT
from tests.deploy.env_example import default_of, grouped_variables
from tests.deploy.setting_groups import GROUPS, PROVIDERS, SWITCHES

PAGE = ROOT / "docs" / "configuration.md"
ENDPOINTS = ROOT / "docs" / "endpoints.md"
"""The page with the variables of the built-in tools' providers."""
_TABLE = re.compile(r"(?<=<!-- Written by `make env-example`. -->\n\n)(?:\|.*\n)+")

HEAD = """\
# Configuration

The service is configured by environment variables, or by a file `.env` in the working directory; the environment takes
precedence. Variables are read once and validated at start: an invalid value stops the start with one line that names
the variable. An inner time limit that is longer than its outer one, such as a `TOOL_TIMEOUT` above `REQUEST_TIMEOUT`,
is reported as a warning at start and by `python -m app check`. An empty variable counts as not set.
[`.env.example`](../.env.example) lists all variables, ready to be copied.

The chat model is chosen in this order: DashScope if `DASHSCOPE_API_KEY` is set; the OpenAI-compatible provider if
`OPENAI_API_KEY` is set, or only `OPENAI_BASE_URL` for a server without keys (Ollama, vLLM); else the
[offline model](offline-model.md), if this machine is the only client: `SERVER_HOST` is a loopback address, and
neither API keys nor tokens nor proxies are configured. Otherwise the start fails, unless `CHAT_PROVIDER` is `offline`
or `auto_or_offline`. A model server on this machine (`http://127.0.0.1:11434/v1`, such as Ollama) is never used by
itself: without a model's key, a start in a terminal looks for it once, and the banner shows the line that would use it.

A tool module has variables of its own, which start with its name: [tools.md](tools.md#settings-clients-and-routes).
Those of weather and translation are in [endpoints.md](endpoints.md#weather-and-translation).
*The documents* are the articles about Spring AI whose examples are part of the service:
[endpoints.md](endpoints.md#the-documents-examples).

<!-- Written by `make env-example` from the settings classes. -->
"""

TRACES = """\
## Traces

`OTEL_EXPORTER_OTLP_ENDPOINT` turns traces on ([operations.md](operations.md#traces)). All other variables are
OpenTelemetry's own, for
[its SDK](https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/) and
[its exporter](https://opentelemetry.io/docs/specs/otel/protocol/exporter/); an invalid value stops the start. Here
`OTEL_SERVICE_NAME` is `toolchat` by default, `OTEL_PROPAGATORS` is `tracecontext`, `OTEL_TRACES_EXPORTER` is `otlp` or
`none`, and the protocol is `http/protobuf` or `grpc`.
"""

_BOUNDS = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
_KINDS = {"boolean": "`true` or `false`", "integer": "whole number", "number": "number", "string": "text",
          "array": "texts, separated by commas"}  # fmt: skip


def render() -> str:
    """The whole page: a chapter for each group, a row for each variable."""
    chapters = [_chapter(title, rows) for title, rows in grouped_variables().items() if title != PROVIDERS]
    return "\n".join([HEAD, *chapters, TRACES])


def render_endpoints() -> str:
    """The page about the endpoints with its table of variables."""
    rows = [_row(name, *where) for name, where in grouped_variables()[PROVIDERS].items()]
    table = "".join(f"{line}\n" for line in (*_HEADER, *rows))
    return _TABLE.sub(lambda _: table, ENDPOINTS.read_text(encoding="utf-8"))


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
    if schema.get("items", {}).get("format") == "path":
        return "folders, separated by :"
    bounds = [f"{sign} {schema[word]:.10g}" for word, sign in _BOUNDS.items() if word in schema]
    return ", ".join([_KINDS[schema["type"]], *bounds])


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
    ENDPOINTS.write_text(render_endpoints(), encoding="utf-8")
