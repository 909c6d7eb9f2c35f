"""What ``docs/configuration.md`` must say, by the settings classes; run as a module, it writes the page."""

from typing import Any

from app.settings.base import EnvironmentSettings
from tests.command_line import ROOT
from tests.deploy.env_example import default_of, titled_variables

PAGE = ROOT / "docs" / "configuration.md"

HEAD = """\
# Configuration

Everything is set by variables of the environment, or of a file `.env` in the folder in which the service is started;
the environment wins. They are read once and checked at start: a value that cannot be used stops the start with one line
that names the variable. A time limit that is longer than what holds it, such as a `TOOL_TIMEOUT` above
`REQUEST_TIMEOUT`, is warned of at start and by `toolchat check`. An empty variable counts as not set.
[`.env.example`](../.env.example) has all of them, ready to be copied.

Which model answers: with `DASHSCOPE_API_KEY` DashScope; else with `OPENAI_API_KEY`, or with `OPENAI_BASE_URL` alone for
a server that takes no key (Ollama, vLLM), the OpenAI-compatible one; else the [offline model](offline-model.md).

A tool folder has variables of its own, which begin with its name: [tools.md](tools.md#a-folder-is-a-tool). *The
documents* are the articles about Spring AI whose examples the service brings along:
[endpoints.md](endpoints.md#the-documents-examples).

<!-- Written by `make env-example` from the settings classes. -->
"""

_BOUNDS = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
_KINDS = {"boolean": "`true` or `false`", "integer": "whole number", "number": "number", "string": "text",
          "array": "texts, separated by commas"}  # fmt: skip


def render() -> str:
    """The whole page: a chapter for each settings class, a row for each variable."""
    chapters = [_chapter(title, rows) for title, rows in titled_variables().items() if rows]
    return "\n".join([HEAD, *chapters])


def _chapter(title: str, rows: dict[str, tuple[type[EnvironmentSettings], str]]) -> str:
    lines = [_row(name, *where) for name, where in rows.items()]
    return "\n".join([f"## {title.split(';')[0]}", "", *_HEADER, *lines, ""])


_HEADER = ["| variable | default | values | meaning |", "| --- | --- | --- | --- |"]


def _row(name: str, cls: type[EnvironmentSettings], field: str) -> str:
    default = default_of(cls, field)
    shown = f"`{default}`" if default else ""
    return f"| `{name}` | {shown} | {_values(cls, field)} | {cls.model_fields[field].description} |"


def _values(cls: type[EnvironmentSettings], field: str) -> str:
    """Which values a variable takes, in words."""
    schema: dict[str, Any] = cls.model_json_schema(by_alias=False)["properties"][field]
    (schema,) = [each for each in schema.get("anyOf", [schema]) if each.get("type") != "null"]
    if "enum" in schema:
        return ", ".join(f"`{each}`" for each in schema["enum"])
    bounds = [f"{sign} {schema[word]:.10g}" for word, sign in _BOUNDS.items() if word in schema]
    return ", ".join([_KINDS[schema["type"]], *bounds])


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
