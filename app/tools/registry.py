"""The tools that are there now, and why the others are not."""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from dishka import AsyncContainer

from app.errors import ConfigurationError, NotConfigured
from app.settings import read_settings
from app.tool_calling.callback import ToolCallback
from app.tool_calling.definition_faults import definition_faults, shown_path
from app.tool_calling.errors import ToolDefinitionError
from app.tool_calling.function_callback import FunctionToolCallback
from app.tool_calling.method_callback import MethodToolCallbackProvider, marked_names
from app.tool_calling.provider import StaticToolCallbackProvider
from app.tool_calling.resolver import StaticToolCallbackResolver
from app.tools.module import ToolModule, ToolSettings

__all__ = ["ConfiguredModule", "ToolRegistry"]

_log = logging.getLogger("app.tools")


@dataclass(frozen=True, slots=True)
class ConfiguredModule:
    """A tool folder with the settings that were read for it."""

    module: ToolModule
    settings: ToolSettings
    warnings: tuple[str, ...] = ()
    """What is worth a word about its tools' definitions; logged at start."""

    @classmethod
    def read(cls, module: ToolModule) -> "ConfiguredModule":
        """Read the folder's settings and check its tools' definitions, unless the settings leave it out.

        Raises:
            ConfigurationError: a setting or a definition cannot be used; one line for each.
        """
        settings = read_settings(module.settings)
        if settings.fault():
            return cls(module, settings)
        found = [definition_faults(tool) for tool in module.declared()]
        errors = [*_without_tools(module), *(line for each in found for line in each.errors)]
        if errors:
            raise ConfigurationError("\n".join(errors))
        return cls(module, settings, tuple(line for each in found for line in each.warnings))

    @property
    def fault(self) -> str | None:
        """Why it does not register; ``None`` when it does."""
        return self.settings.fault()


@dataclass(frozen=True, slots=True)
class _Entry:
    configured: ConfiguredModule
    functions: tuple[ToolCallback, ...] = ()
    methods: StaticToolCallbackProvider = field(default_factory=StaticToolCallbackProvider)
    fault: str | None = None
    names: tuple[str, ...] = ()
    """Of the function tools; made once, since every question asks for them."""


class ToolRegistry:
    """Every tool folder, registered or not; made once at start."""

    def __init__(self, entries: Iterable[_Entry]) -> None:
        self._entries = {entry.configured.module.name: entry for entry in entries}
        functions = [tool for entry in self._entries.values() for tool in entry.functions]
        methods = [tool for entry in self._entries.values() for tool in entry.methods.tool_callbacks()]
        self.resolver = StaticToolCallbackResolver([*functions, *methods])
        self.function_names = tuple(tool.definition.name for tool in functions)

    @classmethod
    async def open(cls, container: AsyncContainer, modules: Iterable[ConfiguredModule]) -> "ToolRegistry":
        """Take the tools of every module that can register out of the container.

        Raises:
            ConfigurationError: a tool cannot be defined; the message names its folder.
        """
        entries = [await _entry(container, each) for each in modules]
        for warning in (line for entry in entries for line in entry.configured.warnings):
            _log.warning("%s", warning)
        return cls(entries)

    def offered(self, module: str, kind: Literal["function", "method"]) -> Sequence[object]:
        """What a folder's routes offer the model: names of function tools, or a provider of method tools.

        Raises:
            NotConfigured: the folder is not registered; the detail names the variable to set.
        """
        entry = self._entries[module]
        if entry.fault:
            raise NotConfigured(f"{entry.configured.module.title}: {entry.fault}")
        return (entry.methods,) if kind == "method" else entry.names

    def describe(self) -> list[dict[str, Any]]:
        """Every folder with its tools' definitions, or with the reason why it is not registered."""
        return [_described(entry) for entry in self._entries.values()]


def _without_tools(module: ToolModule) -> list[str]:
    empty = [each for each in module.methods if not marked_names(each)]
    file = shown_path(module.folder / "__init__.py")
    return [f"{file}: class {each.__name__} has no method that @tool marks" for each in empty]


async def _entry(container: AsyncContainer, configured: ConfiguredModule) -> _Entry:
    if fault := configured.fault:
        return _Entry(configured, fault=fault)
    module = configured.module
    try:
        functions = [await container.get(ToolCallback, component=name) for name in module.function_names()]
        objects: list[object] = [await container.get(needed) for needed in module.methods]
        methods = MethodToolCallbackProvider(*objects).tool_callbacks() if objects else ()
    except ToolDefinitionError as error:
        raise ConfigurationError(f"app/tools/{module.name}: {error}") from error
    if configured.settings.in_sandbox:
        methods = tuple(each.in_sandbox() if isinstance(each, FunctionToolCallback) else each for each in methods)
    names = module.function_names()
    return _Entry(configured, tuple(functions), StaticToolCallbackProvider(*methods), names=names)


def _described(entry: _Entry) -> dict[str, Any]:
    module, fault = entry.configured.module, entry.fault
    described: dict[str, Any] = {"name": module.name, "title": module.title, "path": module.path}
    if fault:
        return described | {"registered": False, "reason": fault, "tools": []}
    tools = [_definition(tool, "function") for tool in entry.functions]
    tools += [_definition(tool, "method") for tool in entry.methods.tool_callbacks()]
    return described | {"registered": True, "tools": tools}


def _definition(tool: ToolCallback, kind: str) -> dict[str, Any]:
    definition = tool.definition
    return {
        "name": definition.name,
        "kind": kind,
        "description": definition.description,
        "input_schema": definition.input_schema,
        "sandbox": tool.metadata.sandbox,
    }
