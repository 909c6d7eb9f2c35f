"""The marked methods of an object as tools."""

import inspect

from app.tool_calling.callback import ToolCallback
from app.tool_calling.errors import ToolDefinitionError
from app.tool_calling.function_callback import FunctionToolCallback, ToolMarker

__all__ = ["MethodToolCallback", "MethodToolCallbackProvider"]


class MethodToolCallback(FunctionToolCallback):
    """A method of an object behind a definition: a function tool whose function is bound."""

    __slots__ = ()


class MethodToolCallbackProvider:
    """Offers every method that ``@tool`` marks on the given objects, inherited, private and static ones too."""

    def __init__(self, *tool_objects: object) -> None:
        self.tool_objects = tool_objects

    def tool_callbacks(self) -> tuple[ToolCallback, ...]:
        """The tools, in the order of the objects and of the methods in their classes.

        Raises:
            ToolDefinitionError: an object has no marked method, or two methods have one name.
        """
        callbacks: dict[str, ToolCallback] = {}
        for tool_object in self.tool_objects:
            for callback in self._of_object(tool_object):
                name = callback.definition.name
                if name in callbacks:
                    owners = ", ".join(type(each).__name__ for each in self.tool_objects)
                    raise ToolDefinitionError(f"two tools have the name {name}, in {owners}")
                callbacks[name] = callback
        return tuple(callbacks.values())

    def _of_object(self, tool_object: object) -> list[MethodToolCallback]:
        marked = [name for name in _attributes(type(tool_object)) if _is_marked(tool_object, name)]
        if not marked:
            raise ToolDefinitionError(f"{type(tool_object).__name__} has no method that @tool marks")
        return [MethodToolCallback.of(getattr(tool_object, name)) for name in marked]


def _attributes(cls: type) -> list[str]:
    return list(dict.fromkeys(name for each in reversed(cls.__mro__) for name in vars(each)))


def _is_marked(tool_object: object, name: str) -> bool:
    attribute = inspect.getattr_static(tool_object, name, None)
    return ToolMarker.on(getattr(attribute, "__func__", attribute)) is not None
