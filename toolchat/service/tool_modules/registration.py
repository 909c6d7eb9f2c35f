"""Creates the tools of every configured module and puts them into the registry."""

import inspect
import logging
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager

from dishka import AsyncContainer

from toolchat.chat.tool_module import ToolModule
from toolchat.errors import ConfigurationError
from toolchat.service.api.tool_registry import DynamicTools, Entry, ToolRegistry
from toolchat.service.tool_modules.definition_checks import raised_by, shown_path, source_file
from toolchat.service.tool_modules.discovery import ConfiguredModule
from toolchat.tool_calling.callback import ToolCallback, ToolSet
from toolchat.tool_calling.errors import ToolDefinitionError
from toolchat.tool_calling.function_callback import FunctionToolCallback, MethodToolCallbackProvider, to_callbacks
from toolchat.tool_calling.results import ToolCallResultConverter

_log = logging.getLogger("toolchat.tools")
_RESERVED = frozenset({"ask"})
"""The tools that the service itself offers to MCP hosts."""


@asynccontextmanager
async def open_registry(
    containers: Mapping[str, AsyncContainer], modules: Iterable[ConfiguredModule]
) -> AsyncGenerator[ToolRegistry, None]:
    """Create the tools of every configured module and open its tool source, without waiting for tools of other servers.

    Raises:
        ConfigurationError: a tool definition is invalid, or a tool source cannot be opened; names the file.
    """
    async with AsyncExitStack() as stack:
        try:
            registry = ToolRegistry([await _entry(containers, each, stack) for each in modules], _RESERVED)
        except ToolDefinitionError as error:
            raise ConfigurationError(str(error)) from error
        try:
            yield registry
        finally:
            # Told first, then closed one after another by the stack: so they shut down together as well.
            registry.stop()


async def _entry(
    containers: Mapping[str, AsyncContainer], configured: ConfiguredModule, stack: AsyncExitStack
) -> Entry:
    module = configured.module
    if fault := configured.fault:
        return Entry(module, fault=fault)
    container = containers[module.name]
    for warning in configured.warnings:
        _log.warning("%s", warning)
    try:
        converter = await container.get(ToolCallResultConverter)
        made = [await container.get(each) if isinstance(each, type) else each for each in module.function_tools]
        own = map(configured.settings.applied_to, map(FunctionToolCallback.from_function, made))
        functions = _with_converter(converter, own)
        more = [await container.get(each) if isinstance(each, type) else each for each in module.callback_sources]
        opened = await _opened(container, module, stack)
        sources = tuple(each for each in opened if isinstance(each, DynamicTools))
        more += [each for each in opened if each not in sources]
        functions += [configured.settings.applied_to(callback) for callback in to_callbacks(more)]
        objects: list[object] = [await container.get(needed) for needed in module.methods]
        methods = MethodToolCallbackProvider(*objects).tool_callbacks() if objects else ()
        advisors = tuple([await container.get(each) for each in module.advisors])
    except ToolDefinitionError as error:
        raise ConfigurationError(f"{shown_path(module.folder)}: {error}") from error
    except Exception as error:  # noqa: BLE001 - of any code
        raise raised_by(module, "cannot be created", error) from None
    methods = tuple(configured.settings.applied_to(each) for each in _with_converter(converter, methods))
    shown = _with_examples(module, functions), _with_examples(module, methods)
    return Entry(module, shown[0], shown[1], advisors=advisors, sources=sources)


def _with_examples(module: ToolModule, tools: Iterable[ToolCallback]) -> ToolSet:
    """The tools with the module's questions as their examples, unless they declare their own."""
    return ToolSet(
        each.with_examples(module.questions)
        if isinstance(each, FunctionToolCallback) and not each.metadata.examples
        else each
        for each in tools
    )


def _with_converter(converter: ToolCallResultConverter, tools: Iterable[ToolCallback]) -> list[ToolCallback]:
    return [each.with_converter(converter) if isinstance(each, FunctionToolCallback) else each for each in tools]


async def _opened(container: AsyncContainer, module: ToolModule, stack: AsyncExitStack) -> Sequence[object]:
    if module.tool_source is None:
        return ()
    try:
        source: object = module.tool_source(container)
        opened: object = None
        if isinstance(source, AbstractAsyncContextManager):
            opened = await stack.enter_async_context(source)
    except Exception as error:  # noqa: BLE001 - of any code
        raise raised_by(module, "tool_source", error) from None
    if isinstance(opened, list | tuple):
        return opened
    if inspect.iscoroutine(source):
        source.close()  # Python would warn that nothing awaits it
    wanted = "be an asynccontextmanager that yields a list of tools"
    raise ConfigurationError(f"{shown_path(source_file(module.folder))}: tool_source must {wanted}")
