"""Whatever a user may offer as a tool, as callbacks."""

import inspect
from functools import lru_cache

from app.tool_calling.callback import ToolCallback
from app.tool_calling.errors import ToolDefinitionError
from app.tool_calling.function_callback import FunctionToolCallback
from app.tool_calling.marking import ToolMarker
from app.tool_calling.method_callback import MethodToolCallbackProvider, marked_names
from app.tool_calling.provider import ToolCallbackProvider

__all__ = ["callbacks_of"]

_of_function = lru_cache(maxsize=256)(FunctionToolCallback.of)
"""Reading a signature costs a hundred times as much as a call, and a tool's cache belongs to its callback."""


def callbacks_of(offered: object) -> tuple[ToolCallback, ...]:
    """Make callbacks of what is offered.

    Args:
        offered: a function, marked by ``@tool`` or not; a bound method; an object with marked methods, or of a marked
            class; a callback; a provider; or a list or tuple of these.

    Raises:
        ToolDefinitionError: it is none of these, or a tool cannot be defined as it is written.
    """
    if isinstance(offered, ToolCallback):
        return (offered,)
    if isinstance(offered, list | tuple):
        return tuple(callback for each in offered for callback in callbacks_of(each))
    if inspect.isfunction(offered):
        return (_of_function(offered),)
    if inspect.ismethod(offered):
        return (FunctionToolCallback.of(offered),)
    if isinstance(offered, type):
        raise ToolDefinitionError(f"{offered.__name__} is a class: offer an object of it")
    if isinstance(offered, ToolCallbackProvider):
        return offered.tool_callbacks()
    if callable(offered) and (ToolMarker.on(offered) or not marked_names(type(offered))):
        return (FunctionToolCallback.of(offered),)
    return MethodToolCallbackProvider(offered).tool_callbacks()
