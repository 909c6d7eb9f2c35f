"""Tools that come and go while the service runs, such as those of another server, and the names they are given."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, runtime_checkable

from toolchat.tool_calling.callback import ToolCallback

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

    def tool_callbacks(self) -> tuple[ToolCallback, ...]:
        """Return the tools on offer."""
        ...

    def prefixed(self, tool: ToolCallback) -> ToolCallback:
        """Return a tool under the name that it gets if its own is taken."""
        ...

    async def wait_ready(self) -> None:
        """Wait for the first tools, at most for the time after which the service starts without them."""
        ...

    def stop(self) -> None:
        """Start to shut down. This is called on all sources first; their context managers then wait for the end."""
        ...


def assign_names(
    offers: Sequence[Sequence[Iterable[str]]], owners: Mapping[str, int], fixed: frozenset[str]
) -> tuple[list[list[str | None]], dict[str, int]]:
    """Assign a name to each tool of each source."""
    # A name stays with its source as long as that source offers it: users may have approved calls by this name, and
    # another tool must not take it over.
    offered = [{name for names in offer for name in names} for offer in offers]
    # A name whose source no longer offers it is free for others.
    owned = {name: source for name, source in owners.items() if name in offered[source]}
    assigned: list[list[str | None]] = []
    for source, offer in enumerate(offers):
        assigned.append([])
        for names in offer:
            free = (each for each in names if each not in fixed and each not in assigned[source])
            chosen = next((each for each in free if owned.setdefault(each, source) == source), None)
            if chosen is None:
                _log.warning("the tool %s is left out: its names are taken", [*names][-1])
            assigned[source].append(chosen)
    return assigned, owned


class ToolNames:
    """Gives the tools of all sources their names, and remembers which source owns a name."""

    def __init__(self, fixed: Iterable[str]) -> None:
        self._fixed = frozenset(fixed)
        self._owners: dict[str, int] = {}

    def rename(self, sources: Sequence[DynamicTools]) -> list[tuple[ToolCallback, ...]]:
        """Return the tools of each source under their names; a tool without a free name is left out and logged."""
        variants = [[_by_name(tool, each.prefixed(tool)) for tool in each.tool_callbacks()] for each in sources]
        names, self._owners = assign_names(variants, self._owners, self._fixed)
        return [
            tuple(tools[name] for tools, name in zip(source, chosen, strict=True) if name is not None)
            for source, chosen in zip(variants, names, strict=True)
        ]


def _by_name(*variants: ToolCallback) -> dict[str, ToolCallback]:
    return {each.definition.name: each for each in variants}
