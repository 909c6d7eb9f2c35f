"""The marked methods of an object as tools."""

import inspect
from typing import Any

from app.tool_calling.callback import ToolCallback
from app.tool_calling.errors import ToolDefinitionError
from app.tool_calling.function_callback import FunctionToolCallback
from app.tool_calling.marking import ToolMarker, name_of
from app.tool_calling.resolver import same_name

__all__ = ["MethodToolCallback", "MethodToolCallbackProvider", "marked_names"]


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
                    raise same_name(callback, callbacks[name])
                callbacks[name] = callback
        return tuple(callbacks.values())

    def _of_object(self, tool_object: object) -> list[MethodToolCallback]:
        marked = _marked_attributes(type(tool_object))
        if not marked:
            raise ToolDefinitionError(f"{type(tool_object).__name__} has no method that @tool marks")
        return [MethodToolCallback.of(getattr(tool_object, attribute)) for attribute in marked]


def marked_names(cls: type) -> list[str]:
    """The names of the tools that objects of a class offer."""
    return [name_of(method) for method in _marked_attributes(cls).values()]


def _marked_attributes(cls: type) -> dict[str, Any]:
    names = dict.fromkeys(name for each in reversed(cls.__mro__) for name in vars(each))
    attributes = {name: inspect.getattr_static(cls, name, None) for name in names}
    functions = {name: getattr(attribute, "__func__", attribute) for name, attribute in attributes.items()}
    return {name: function for name, function in functions.items() if ToolMarker.on(function) is not None}
