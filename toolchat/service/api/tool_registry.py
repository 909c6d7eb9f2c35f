"""The tool registry: which tools are available now, under which names, and why others are not."""

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, Protocol, runtime_checkable

from toolchat.chat.advisors.base import Advisor
from toolchat.chat.tool_module import ToolModule
from toolchat.errors import NotConfigured, NotFound, ToolServerUnavailable, ValidationFailed
from toolchat.tool_calling.callback import ToolCallback, ToolSet
from toolchat.tool_calling.caller import current_caller

_log = logging.getLogger(__name__)


@runtime_checkable
class DynamicTools(Protocol):
    """A source whose tools change while the service runs."""

    version: int
    """Changes whenever the tools or the fault change."""
    fault: str | None
    """Why the tools cannot be used now. Those known last stay on offer; a call of one reports the fault."""
    cause: str
    """What lies behind the fault, with addresses; only for operators."""

    def tool_callbacks(self) -> tuple[ToolCallback, ...]: ...

    def prefixed(self, tool: ToolCallback) -> ToolCallback:
        """Return a tool under the name that it gets if its own is taken."""

    async def wait_ready(self) -> None:
        """Wait for the first tools, at most for the time after which the service is ready without them."""

    def stop(self) -> None:
        """Start to shut down. This is called on all sources first; their context managers then wait for the end."""


class ToolNames:
    """Gives the tools of all sources their names, and remembers which source owns a name."""

    # A name stays with its source as long as that source offers it: users may have approved calls by this name, and
    # another tool must not take it over.

    def __init__(self, fixed: Iterable[str]) -> None:
        self._fixed = frozenset(fixed)
        self._owners: dict[str, int] = {}

    def rename(self, sources: Sequence[DynamicTools]) -> list[tuple[ToolCallback, ...]]:
        """Return the tools of each source under their names; a tool without a free name is left out and logged."""
        offers = [
            [{it.definition.name: it for it in (tool, each.prefixed(tool))} for tool in each.tool_callbacks()]
            for each in sources
        ]
        offered = [{name for variants in offer for name in variants} for offer in offers]
        self._owners = {name: source for name, source in self._owners.items() if name in offered[source]}
        renamed = []
        for source, offer in enumerate(offers):
            tools: dict[str, ToolCallback] = {}
            for variants in offer:
                free = (each for each in variants if each not in self._fixed and each not in tools)
                name = next((each for each in free if self._owners.setdefault(each, source) == source), None)
                if name is None:
                    _log.warning("the tool %s is left out: its names are taken", [*variants][-1])
                else:
                    tools[name] = variants[name]
            renamed.append(tuple(tools.values()))
        return renamed


_NO_TOOLS = ToolSet()
_RETRY_AFTER = 5
"""Seconds after which a server that is unavailable may be back."""


@dataclass(frozen=True)
class Entry:
    """A tool module with its tools."""

    module: ToolModule
    functions: ToolSet = _NO_TOOLS
    methods: ToolSet = _NO_TOOLS
    fault: str | None = None
    """Why the module is not registered; ``None`` if it is."""
    advisors: tuple[Advisor, ...] = ()
    sources: tuple[DynamicTools, ...] = ()

    @cached_property
    def tools(self) -> ToolSet:
        """Every function and method tool; the same object for every question."""
        return ToolSet(self.functions + self.methods)

    def in_conversation(self) -> ToolSet:
        """Return every tool; of interchangeable ones the functions."""
        return self.functions if self.module.interchangeable and self.functions else self.tools

    def now(self, dynamic: Sequence[ToolCallback]) -> "Entry":
        """Return a copy with the dynamic tools of the moment added."""
        fault = next((each.fault for each in self.sources if each.fault), self.fault)
        return replace(self, functions=ToolSet((*self.functions, *dynamic)), fault=fault)

    def check(self) -> None:
        if self.fault:
            detail = f"{self.module.title}: {self.fault}"
            raise ToolServerUnavailable(detail, retry_after=_RETRY_AFTER) if self.sources else NotConfigured(detail)


class Snapshot:
    """The modules and tools at one moment; immutable, and replaced when a dynamic tool changes."""

    def __init__(self, entries: Iterable[Entry], names: ToolNames) -> None:
        entries = list(entries)
        renamed = iter(names.rename([source for entry in entries for source in entry.sources]))
        present = [
            entry.now([tool for _ in entry.sources for tool in next(renamed)]) if entry.sources else entry
            for entry in entries
        ]
        self.entries = {entry.module.name: entry for entry in present}
        self.every_tool = ToolSet.unique([tool for entry in present for tool in entry.tools])
        routed = [name for name, entry in self.entries.items() if not entry.module.in_conversations]
        self.conversations = {module: self._conversation(module) for module in ("", *routed)}
        self.owners = {tool.definition.name: entry for entry in present for tool in entry.tools}

    def _conversation(self, module: str) -> tuple[ToolSet, Sequence[Advisor]]:
        entries = [each for name, each in self.entries.items() if each.module.in_conversations or name == module]
        tools = ToolSet([tool for entry in entries for tool in entry.in_conversation()])
        return tools, [advisor for entry in entries for advisor in entry.advisors]


class ToolRegistry:
    """All tool modules, registered or not. A change of dynamic tools takes effect with the next request."""

    def __init__(self, entries: Iterable[Entry], reserved: Iterable[str] = ()) -> None:
        self._entries = tuple(entries)
        self.starting = {entry.module.title for entry in self._entries if entry.sources}
        """Modules whose tools are still waited for."""
        self._sources = [each for entry in self._entries for each in entry.sources]
        fixed = {tool.definition.name for entry in self._entries for tool in entry.tools}
        self._names = ToolNames(fixed.union(reserved))
        self._versions = [each.version for each in self._sources]
        self._snapshot = Snapshot(self._entries, self._names)
        self.advisors = [each for entry in self._entries for each in entry.advisors]

    def resolve(self, name: str) -> ToolCallback | None:
        return self._now.every_tool.by_name.get(name)

    def names(self) -> tuple[str, ...]:
        return tuple(self._now.every_tool.by_name)

    @property
    def entries(self) -> Mapping[str, Entry]:
        """The modules of the moment by name; the same object until a dynamic tool changes."""
        return self._now.entries

    @property
    def _now(self) -> Snapshot:
        """The snapshot of the moment; the same object until a dynamic tool changes."""
        if self._sources and (versions := [each.version for each in self._sources]) != self._versions:
            self._versions = versions
            self._snapshot = Snapshot(self._entries, self._names)
        return self._snapshot

    async def wait_ready(self) -> None:
        await asyncio.gather(*map(self._wait_for, self._entries))

    async def _wait_for(self, entry: Entry) -> None:
        await asyncio.gather(*(each.wait_ready() for each in entry.sources))
        self.starting.discard(entry.module.title)

    def stop(self) -> None:
        for each in self._sources:
            each.stop()

    def offered(self, module: str, kind: Literal["function", "method"]) -> Sequence[object]:
        """Return the tools that a module's chat routes offer to the model."""
        entry = self._now.entries[module]
        entry.check()
        return entry.methods if kind == "method" else entry.functions

    def tool(self, name: str) -> ToolCallback:
        if found := self._usable(name):
            self._now.owners[name].check()
            return found
        # A declared tool that does not exist, because its module lacks a key, gets the reason instead of "not found".
        for entry in self._now.entries.values() if current_caller.get().may_use(name) else ():
            if any(each.name == name for each in entry.module.declared()):
                entry.check()
        raise NotFound(f"no tool has the name {name[:64]}; known: {self._known()}")

    def for_conversation(self, names: Sequence[str] | None, module: str = "") -> tuple[ToolSet, Sequence[Advisor]]:
        """The tools that a conversation offers, all or those of these names, and the advisors of their modules."""
        if names is None:
            return self._now.conversations.get(module, self._now.conversations[""])
        chosen = tuple(dict.fromkeys(names))
        for name in chosen:
            if self._usable(name) is None:
                raise ValidationFailed(f"tools: no tool has the name {name[:64]}; known: {self._known()}")
        advisors = (each for name in chosen for each in self._now.owners[name].advisors)
        return self._now.every_tool.subset(chosen), list(dict.fromkeys(advisors))

    def for_folder(self, name: str) -> tuple[ToolSet, Sequence[Advisor]]:
        entry = self._now.entries.get(name)
        if entry is None:
            raise NotFound(f"no tool module has the name {name[:64]}")
        entry.check()
        return entry.in_conversation(), entry.advisors

    def _usable(self, name: str) -> ToolCallback | None:
        """Return the tool of a name, or ``None`` also if the caller may not use it."""
        return self.resolve(name) if current_caller.get().may_use(name) else None

    def _known(self) -> str:
        return ", ".join(filter(current_caller.get().may_use, self.names())) or "none"
