"""What the names in a file of questions stand for here."""

from collections.abc import Mapping, Sequence
from typing import Any

from toolchat.chat.tool_registry import ToolRegistry
from toolchat.tool_calling.callback import ToolCallback

__all__ = ["Naming", "NotRegistered"]


class NotRegistered(Exception):
    """A name that no registered tool has; the service that runs elsewhere may have it."""


class Naming:
    """Tools by their own names; also by the folder that offers them, or the last part of its path: ``time``."""

    def __init__(self, registry: ToolRegistry) -> None:
        self._registry = registry
        self._folders: dict[str, list[str]] = {}
        for module in registry.describe():
            functions = [tool["name"] for tool in module["tools"] if tool["kind"] == "function"]
            offered = functions or [tool["name"] for tool in module["tools"]]
            for name in {module["name"], module["path"].rsplit("/", 1)[-1]} if offered else ():
                self._folders[name] = offered

    def offered(self, names: str | Sequence[str]) -> list[str] | None:
        """The names of the tools that an entry offers; ``None`` for all.

        Raises:
            NotRegistered: one of them is not here.
        """
        if names in ("all", "none"):
            return None if names == "all" else []
        given = [names] if isinstance(names, str) else names
        return [tool for name in given for tool in self._named(name)]

    def tool(self, name: str) -> ToolCallback:
        """The tool that a name stands for.

        Raises:
            NotRegistered: there is none, or a folder has several.
        """
        found = [self._registry.resolve(each) for each in self._named(name)]
        if len(found) != 1 or found[0] is None:
            raise NotRegistered(name)
        return found[0]

    def _named(self, name: str) -> list[str]:
        if self._registry.resolve(name):
            return [name]
        if name not in self._folders:
            raise NotRegistered(name)
        return self._folders[name]

    def call(self, name: str, given: Any) -> tuple[str, Mapping[str, Any]]:
        """A call of the file in full: the tool's own name, and its arguments by name.

        Raises:
            NotRegistered: as :meth:`tool`.
            ValueError: there are more or fewer values than required parameters.
        """
        definition = self.tool(name).definition
        if isinstance(given, dict):
            return definition.name, given
        required = definition.input_schema.get("required", [])
        values = given if isinstance(given, list) else [given]
        if len(values) != len(required):
            raise ValueError(f"{name} takes {', '.join(required) or 'nothing'}, or its arguments by name")
        return definition.name, dict(zip(required, values, strict=True))
