"""The tools that are there at one time, and under which names."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from app.chat.advisors import Advisor
from app.errors import NotConfigured, ToolServerAway
from app.tool_calling.callback import ToolCallback
from app.tool_calling.provider import StaticToolCallbackProvider
from app.tool_calling.resolver import StaticToolCallbackResolver
from app.tools.changing import ChangingTools, ToolNames
from app.tools.describing import described_tool
from app.tools.module import ToolModule

__all__ = ["Entry", "Snapshot"]

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
    changing: tuple[ChangingTools, ...] = ()

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
            ToolServerAway: the server that has its tools is away.
        """
        if self.fault:
            told = f"{self.module.title}: {self.fault}"
            raise ToolServerAway(told, retry_after=_COME_BACK) if self.changing else NotConfigured(told)


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
