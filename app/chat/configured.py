"""The parts of a client as the settings describe them, for the service and for programs that use it as a library."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from app.breakers import Breakers
from app.chat.model_choice import choose_chat_model
from app.chat.tool_calling_advisor import ToolCallingAdvisor
from app.chat_models.base import ChatModel
from app.http import OutboundHttp
from app.settings import Settings, read_settings
from app.tool_calling.exception_processor import ToolExecutionExceptionProcessor
from app.tool_calling.limits import ToolCallLimits
from app.tool_calling.manager import ToolCallingManager

__all__ = ["ConfiguredParts", "exception_processor", "manager", "open_parts", "outbound_http", "tool_loop"]


@dataclass(frozen=True, slots=True)
class ConfiguredParts:
    """What a client is made of."""

    model: ChatModel
    loop: ToolCallingAdvisor
    system_text: str


@asynccontextmanager
async def open_parts() -> AsyncGenerator[ConfiguredParts, None]:
    """Open what a client needs that asks the model which the environment and ``.env`` name.

    Raises:
        ConfigurationError: a setting cannot be used, or the provider that is named lacks its key.
    """
    settings = read_settings(Settings)
    chosen = choose_chat_model(settings)
    http = outbound_http(settings)
    try:
        loop = tool_loop(settings, manager(settings, exception_processor(settings)))
        yield ConfiguredParts(chosen.create(http), loop, settings.system_prompt)
    finally:
        await http.aclose()


def outbound_http(settings: Settings) -> OutboundHttp:
    """The pool of connections to upstreams; whoever makes it closes it."""
    return OutboundHttp(
        connect_timeout=settings.connect_timeout,
        max_connections=settings.http_max_connections,
        breakers=Breakers(settings.breaker_failures, settings.breaker_pause),
    )


def exception_processor(settings: Settings) -> ToolExecutionExceptionProcessor:
    """What becomes of an exception that a tool raised."""
    return ToolExecutionExceptionProcessor(settings.tool_throw_exception_on_error)


def manager(settings: Settings, processor: ToolExecutionExceptionProcessor) -> ToolCallingManager:
    """What runs tool calls."""
    return ToolCallingManager(
        timeout=settings.tool_timeout,
        max_concurrency=settings.tool_max_concurrency,
        max_result_chars=settings.tool_result_max_chars,
        exception_processor=processor,
    )


def tool_loop(settings: Settings, manager: ToolCallingManager) -> ToolCallingAdvisor:
    """The loop around model and tools."""
    limits = ToolCallLimits(
        settings.tool_max_calls_per_tool, settings.tool_max_calls, settings.tool_max_identical_calls
    )
    return ToolCallingAdvisor(manager, max_rounds=settings.tool_max_rounds, limits=limits)
