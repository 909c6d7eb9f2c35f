"""What ``.env.example`` must say, worked out from the settings classes; run as a module, it writes the file."""

import importlib
import pkgutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TypeVar

from pydantic import SecretStr
from pydantic_core import PydanticUndefined, to_json

import app
from scripts.setting_groups import GROUPS
from tests.application import TOOLS
from toolchat import ToolSettings
from toolchat.service.observability.tracing import TracingSettings
from toolchat.service.settings.base import EnvironmentSettings, environment_class, environment_name
from toolchat.service.settings.service_settings import Settings
from toolchat.service.tool_modules.discovery import discover

_ClassT = TypeVar("_ClassT")

FILE = Path(__file__).parents[1] / ".env.example"

HEADER = """\
# Copy this file to .env and fill in what you need; a variable of the environment wins over .env.
# A line such as #NAME=value shows a default: take the # away to change it.
# Written by `make docs` from the settings classes.
"""


TRACES = """\
## Traces

# OpenTelemetry's own variables turn traces on and configure them: docs/monitoring.md#traces
#OTEL_EXPORTER_OTLP_ENDPOINT=http://collector:4318
"""


@cache
def settings_classes() -> dict[type[EnvironmentSettings], str]:
    """Every settings class of the service and its title: the general one, those of the core, those of the tools."""
    _import_everything()
    core = {cls for cls in _subclasses(EnvironmentSettings) if cls.__module__.startswith(("app.", "toolchat."))} - {
        Settings
    }
    ordered: list[type[EnvironmentSettings]] = [
        Settings,
        *sorted(core - _tool_settings(), key=lambda cls: (cls.__module__, cls.__name__)),
    ]
    titles = {cls: (cls.__doc__ or cls.__name__).splitlines()[0].rstrip(".") for cls in ordered}
    tools = {environment_class(each.settings, each.env_prefix): f"The tool {each.name}" for each in discover(TOOLS)}
    return titles | tools


def variables() -> dict[str, list[tuple[type[EnvironmentSettings], str]]]:
    """Every variable, with the classes and the fields that it sets."""
    found: dict[str, list[tuple[type[EnvironmentSettings], str]]] = {}
    for cls in settings_classes():
        for field in cls.model_fields:
            found.setdefault(environment_name(cls, field), []).append((cls, field))
    return found


def documented() -> dict[str, tuple[type[EnvironmentSettings], str]]:
    """Every variable with the first class and field that it sets; no aliases, and none that OpenTelemetry documents."""
    return {
        name: (kind, field)
        for name, ((kind, field), *_) in variables().items()
        if kind is not TracingSettings and not kind.model_fields[field].json_schema_extra
    }


def grouped_variables() -> dict[str, dict[str, tuple[type[EnvironmentSettings], str]]]:
    """The documented variables by the title of their group."""
    found = documented()
    return {title: {name: found[name] for name in names.split()} for title, (_, names) in GROUPS.items()}


def render() -> str:
    """The whole file: a section for each group."""
    sections = {
        title: [_entry(name, *where) for name, where in found.items()] for title, found in grouped_variables().items()
    }
    return "\n".join([HEADER, *("\n".join([f"## {title}", "", *each]) for title, each in sections.items()), TRACES])


def default_of(cls: type[EnvironmentSettings], field: str) -> str:
    """A default as it stands in the file; nothing stands for "not set"."""
    value = cls.model_fields[field].get_default(call_default_factory=True, validated_data={})
    if isinstance(value, SecretStr):
        value = value.get_secret_value()
    if value is None or value is PydanticUndefined:
        return ""
    if isinstance(value, tuple):
        return ",".join(value)
    return value if isinstance(value, str) else to_json(value).decode().removesuffix(".0")


def _import_everything() -> None:
    for module in pkgutil.walk_packages(app.__path__, "app."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)


def _subclasses(cls: type[_ClassT]) -> Iterator[type[_ClassT]]:
    for child in cls.__subclasses__():
        yield child
        yield from _subclasses(child)


def _tool_settings() -> set[type]:
    return set(_subclasses(ToolSettings))


def _entry(name: str, cls: type[EnvironmentSettings], field: str) -> str:
    value = default_of(cls, field)
    return f"# {cls.model_fields[field].description}\n{'#' if value else ''}{name}={value}\n"


if __name__ == "__main__":
    FILE.write_text(render(), encoding="utf-8")
