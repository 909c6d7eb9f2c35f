"""Tools that come and go while the service runs, such as those of another server, and the names that they get."""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol, runtime_checkable

from toolchat.tool_calling.callback import ToolCallback, ToolCallbackResolver

__all__ = ["DynamicTools", "LiveResolver", "ToolNames"]

_log = logging.getLogger("app.tools")


@runtime_checkable
class DynamicTools(Protocol):
    """Offers other tools at one time than at another."""

    version: int
    """Another number after each change of the tools or of the fault."""
    fault: str | None
    """Why they cannot be used just now; those that were known last are offered on, and say so themselves."""

    def tool_callbacks(self) -> tuple[ToolCallback, ...]:
        """The tools on offer."""
        ...

    def prefixed(self, tool: ToolCallback) -> ToolCallback:
        """The same tool under the name that it has where its own is taken."""
        ...

    async def wait_ready(self) -> None:
        """Wait for the first tools, or for the time after which the service starts without them."""
        ...

    def stop(self) -> None:
        """Begin to end; whoever opened them waits for that, after all others have been told as well."""
        ...


class LiveResolver:
    """Finds among the tools that are there when it is asked."""

    def __init__(self, current: Callable[[], ToolCallbackResolver]) -> None:
        self._current = current

    def resolve(self, name: str) -> ToolCallback | None:
        """Look up one tool."""
        return self._current().resolve(name)

    def names(self) -> tuple[str, ...]:
        """Every name that would be found."""
        return self._current().names()


class ToolNames:
    """Which tool has which name.

    A name stays with whoever has it for as long as that one offers it: what comes later never takes it over, since
    somebody may have consented to a call by it. Who wants a name that is taken gets it with its prefix.

    Args:
        fixed: the names of tools that do not change.
    """

    def __init__(self, fixed: Iterable[str]) -> None:
        self._fixed = frozenset(fixed)
        self._owners: dict[str, DynamicTools] = {}

    def given(self, offering: Sequence[DynamicTools]) -> list[tuple[ToolCallback, ...]]:
        """The tools of each, under the names that they get; what gets none is left out, and the log says so."""
        tools = [[(tool, each.prefixed(tool)) for tool in each.tool_callbacks()] for each in offering]
        owners: dict[str, DynamicTools] = {}
        for each, pairs in zip(offering, tools, strict=True):
            wanted = {name for pair in pairs for name in _names(pair)}
            owners |= {name: each for name in wanted if self._owners.get(name) is each}
        self._owners = owners
        return [tuple(self._named(each, pairs)) for each, pairs in zip(offering, tools, strict=True)]

    def _named(self, offering: DynamicTools, pairs: Iterable[tuple[ToolCallback, ...]]) -> Iterator[ToolCallback]:
        taken: set[str] = set()
        for pair in pairs:
            free = (each for each in pair if self._is_free(each.definition.name, offering, taken))
            if tool := next(free, None):
                taken.add(tool.definition.name)
                yield tool
            else:
                _log.warning("the tool %s is left out: its names are taken", pair[-1].definition.name)

    def _is_free(self, name: str, offering: DynamicTools, taken: set[str]) -> bool:
        if name in self._fixed or name in taken:
            return False
        return self._owners.setdefault(name, offering) is offering


def _names(tools: Iterable[ToolCallback]) -> Iterator[str]:
    return (each.definition.name for each in tools)
