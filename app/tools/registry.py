"""The tools that are there now, and why the others are not."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from dishka import AsyncContainer

from app.tools.discovery import ConfiguredModule
from app.tools.dynamic_tools import DynamicTools, LiveResolver, ToolNames
from toolchat.chat.advisors.base import Advisor
from toolchat.chat.tool_module import ToolModule
from toolchat.errors import ConfigurationError, NotConfigured, NotFound, ToolServerUnavailable, ValidationFailed
from toolchat.tool_calling.callback import StaticToolCallbackProvider, StaticToolCallbackResolver, ToolCallback
from toolchat.tool_calling.caller import current_caller
from toolchat.tool_calling.definition_checks import shown_path
from toolchat.tool_calling.errors import ToolDefinitionError
from toolchat.tool_calling.function_callback import (
    FunctionToolCallback,
    MethodToolCallbackProvider,
    to_callbacks,
)
from toolchat.tool_calling.results import ToolCallResultConverter

__all__ = ["Entry", "Snapshot", "ToolRegistry", "described_tool"]


def described_tool(tool: ToolCallback, kind: str) -> dict[str, Any]:
    """A tool's definition, how the service treats it, and arguments that fit it, where some can be made of its schema.

    Args:
        tool: the tool.
        kind: ``function`` or ``method``.
    """
    definition = tool.definition
    return {
        "name": definition.name,
        "kind": kind,
        "description": definition.description,
        "input_schema": definition.input_schema,
        "sandbox": tool.metadata.sandbox,
        "requires_approval": tool.metadata.requires_approval,
        "read_only": tool.metadata.is_read_only,
    }


_COME_BACK = 5
"""Seconds after which a server that is away may have been found again."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A tool folder with its tools."""

    module: ToolModule
    functions: tuple[ToolCallback, ...] = ()
    methods: StaticToolCallbackProvider = field(default_factory=StaticToolCallbackProvider)
    fault: str | None = None
    """Why it is not registered; ``None`` when it is."""
    advisors: tuple[Advisor, ...] = ()
    changing: tuple[DynamicTools, ...] = ()

    def tools(self) -> tuple[ToolCallback, ...]:
        """Every tool, in each form that it has."""
        return (*self.functions, *self.methods.tool_callbacks())

    def in_conversation(self) -> tuple[ToolCallback, ...]:
        """One form of each tool: the model must not choose between two that do the same."""
        return self.functions or self.methods.tool_callbacks()

    def described(self) -> dict[str, Any]:
        """The folder with its tools' definitions, or with the reason why it is not registered."""
        module = self.module
        described: dict[str, Any] = {"name": module.name, "title": module.title, "path": module.path}
        described |= {"registered": False, "reason": self.fault} if self.fault else {"registered": True}
        tools = [described_tool(tool, "function") for tool in self.functions]
        tools += [described_tool(tool, "method") for tool in self.methods.tool_callbacks()]
        return described | {"tools": tools}

    def now(self, changing: Sequence[ToolCallback]) -> "Entry":
        """Copy with the tools that it has just now beside those that it always has."""
        fault = next((each.fault for each in self.changing if each.fault), self.fault)
        return replace(self, functions=(*self.functions, *changing), fault=fault)

    def check(self) -> None:
        """Make sure that it can be asked.

        Raises:
            NotConfigured: it is not registered; the detail names the variable to set.
            ToolServerUnavailable: the server that has its tools is away.
        """
        if self.fault:
            told = f"{self.module.title}: {self.fault}"
            raise ToolServerUnavailable(told, retry_after=_COME_BACK) if self.changing else NotConfigured(told)


class Snapshot:
    """Every folder and every tool, as long as none of them changes.

    Args:
        entries: the folders, with the tools that they always have.
        names: gives the others their names.
    """

    def __init__(self, entries: Iterable[Entry], names: ToolNames) -> None:
        entries = list(entries)
        offering = [each for entry in entries for each in entry.changing]
        given = dict(zip(map(id, offering), names.given(offering), strict=True))
        present = [
            entry.now([tool for each in entry.changing for tool in given[id(each)]]) if entry.changing else entry
            for entry in entries
        ]
        self.entries = {entry.module.name: entry for entry in present}
        functions = [tool for entry in present for tool in entry.functions]
        methods = [tool for entry in present for tool in entry.methods.tool_callbacks()]
        self.resolver = StaticToolCallbackResolver([*functions, *methods])
        self.all_tools = [tool for entry in present for tool in entry.in_conversation()]
        self.owners = {tool.definition.name: entry for entry in present for tool in entry.tools()}
        self._described: list[dict[str, Any]] | None = None

    def describe(self) -> list[dict[str, Any]]:
        """Every folder; made once."""
        if self._described is None:
            self._described = [entry.described() for entry in self.entries.values()]
        return self._described


_log = logging.getLogger("app.tools")


class ToolRegistry:
    """Every tool folder, registered or not; made once at start. What changes later is seen at the next question."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._given = tuple(entries)
        self._changing = [each for entry in self._given for each in entry.changing]
        self._names = ToolNames(tool.definition.name for entry in self._given for tool in entry.tools())
        self._versions = [each.version for each in self._changing]
        self._snapshot = Snapshot(self._given, self._names)
        self.resolver = LiveResolver(lambda: self._now.resolver)
        self.advisors = [each for entry in self._given for each in entry.advisors]

    @property
    def _now(self) -> Snapshot:
        """The tools that are there now: the same object for as long as they stay."""
        if self._changing and (versions := [each.version for each in self._changing]) != self._versions:
            self._versions = versions
            self._snapshot = Snapshot(self._given, self._names)
        return self._snapshot

    @classmethod
    @asynccontextmanager
    async def opened(
        cls, container: AsyncContainer, modules: Iterable[ConfiguredModule]
    ) -> AsyncGenerator["ToolRegistry", None]:
        """Take the tools of every module that can register out of the container, and open what offers more.

        What needs its time, such as another server, is opened side by side, and waited for as long as it wants.

        Raises:
            ConfigurationError: a tool cannot be defined, or what offers tools cannot be opened; names the folder.
        """
        async with AsyncExitStack() as stack:
            entries = [await _entry(container, each, stack) for each in modules]
            await asyncio.gather(*(each.wait_ready() for entry in entries for each in entry.changing))
            try:
                registry = cls(entries)
            except ToolDefinitionError as error:
                raise ConfigurationError(str(error)) from error
            try:
                yield registry
            finally:
                for each in registry._changing:
                    each.stop()

    def offered(self, module: str, kind: Literal["function", "method"]) -> Sequence[object]:
        """What a folder's routes offer the model.

        Raises:
            NotConfigured: the folder is not registered; the detail names the variable to set, or the server is away.
        """
        entry = self._now.entries[module]
        entry.check()
        return entry.methods.tool_callbacks() if kind == "method" else entry.functions

    def tool(self, name: str) -> ToolCallback:
        """The tool of a name, function or method.

        Raises:
            NotFound: there is none.
            NotConfigured: its folder is not registered; the detail names the variable to set, or the server is away.
        """
        if found := self._usable(name):
            self._now.owners[name].check()
            return found
        for entry in self._now.entries.values() if current_caller.get().may_use(name) else ():
            if any(each.name == name for each in entry.module.declared()):
                entry.check()
        raise NotFound(f"no tool has the name {name[:64]}; known: {self._known()}")

    def for_conversation(self, names: Sequence[str] | None) -> tuple[Sequence[object], Sequence[Advisor]]:
        """What a conversation is offered, all or the tools of these names, and the advisors that go with them.

        Raises:
            ValidationFailed: there is no such tool.
        """
        if names is None:
            return self._now.all_tools, self.advisors
        tools = [self._chosen(name) for name in dict.fromkeys(names)]
        advisors = (each for tool in tools for each in self._now.owners[tool.definition.name].advisors)
        return tools, list(dict.fromkeys(advisors))

    def for_folder(self, name: str) -> tuple[Sequence[object], Sequence[Advisor]]:
        """What a conversation with the tools of one folder is offered, and the advisors that go with them.

        Raises:
            NotFound: there is no such folder.
            NotConfigured: it is not registered; the detail names the variable to set.
        """
        entry = self._now.entries.get(name)
        if entry is None:
            raise NotFound(f"no folder has the name {name[:64]}")
        entry.check()
        return entry.in_conversation(), entry.advisors

    def state_keys(self, conversation: str) -> Sequence[str]:
        """Under which keys the folders' tools keep something of a conversation."""
        kept = (prefix for entry in self._given for prefix in entry.module.state_keys)
        return [f"{prefix}:{conversation}" for prefix in kept]

    def _chosen(self, name: str) -> ToolCallback:
        found = self._usable(name)
        if found is None:
            raise ValidationFailed(f"tools: no tool has the name {name[:64]}; known: {self._known()}")
        return found

    def _usable(self, name: str) -> ToolCallback | None:
        """The tool of a name; to somebody who may not use it, it is not there."""
        return self.resolver.resolve(name) if current_caller.get().may_use(name) else None

    def _known(self) -> str:
        return ", ".join(filter(current_caller.get().may_use, self.resolver.names())) or "none"

    def describe(self) -> list[dict[str, Any]]:
        """Every folder with its tools' definitions, or with the reason why it is not registered."""
        return self._now.describe()


async def _entry(container: AsyncContainer, configured: ConfiguredModule, stack: AsyncExitStack) -> Entry:
    module = configured.module
    if fault := configured.fault:
        return Entry(module, fault=fault)
    for warning in configured.warnings:
        _log.warning("%s", warning)
    try:
        converter = await container.get(ToolCallResultConverter)
        functions = [await container.get(ToolCallback, component=name) for name in module.function_names()]
        functions = _told_by(converter, functions)
        more = [await container.get(each) if isinstance(each, type) else each for each in module.callback_sources]
        opened = await _opened(container, module, stack)
        changing = tuple(each for each in opened if isinstance(each, DynamicTools))
        more += [each for each in opened if each not in changing]
        functions += [configured.settings.applied_to(callback) for callback in to_callbacks(more)]
        objects: list[object] = [await container.get(needed) for needed in module.methods]
        methods = MethodToolCallbackProvider(*objects).tool_callbacks() if objects else ()
    except ToolDefinitionError as error:
        raise ConfigurationError(f"{shown_path(module.folder)}: {error}") from error
    methods = tuple(configured.settings.applied_to(each) for each in _told_by(converter, methods))
    advisors = tuple([await container.get(each) for each in module.advisors])
    provider = StaticToolCallbackProvider(*methods)
    return Entry(module, tuple(functions), provider, advisors=advisors, changing=changing)


def _told_by(converter: ToolCallResultConverter, tools: Iterable[ToolCallback]) -> list[ToolCallback]:
    return [each.with_converter(converter) if isinstance(each, FunctionToolCallback) else each for each in tools]


async def _opened(container: AsyncContainer, module: ToolModule, stack: AsyncExitStack) -> Sequence[object]:
    if module.tool_source is None:
        return ()
    try:
        return await stack.enter_async_context(module.tool_source(container))
    except Exception as error:
        _log.error("tools cannot be opened", extra={"folder": module.name}, exc_info=error)
        file, which = shown_path(module.folder / "__init__.py"), "offered" if module.offered else "tool_source"
        raise ConfigurationError(f"{file}: {which}: {type(error).__name__}; the log has more") from error
