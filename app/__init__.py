"""Chat questions answered with live tools: the service, and its core as a library (``docs/library.md``)."""

from typing import TYPE_CHECKING

from app.lazy import exporting

if TYPE_CHECKING:
    from app.chat.advisors import Advisor as Advisor
    from app.chat.advisors import AdvisorChain as AdvisorChain
    from app.chat.client import ChatClient as ChatClient
    from app.chat.request import Approval as Approval
    from app.chat.request import ChatRequest as ChatRequest
    from app.chat.request import Emit as Emit
    from app.chat_models.base import ChatModel as ChatModel
    from app.chat_models.base import ChatOptions as ChatOptions
    from app.chat_models.base import ChatResponse as ChatResponse
    from app.chat_models.base import TextDelta as TextDelta
    from app.main import create_app as create_app
    from app.tool_calling.context import ToolContext as ToolContext
    from app.tool_calling.errors import ToolExecutionError as ToolExecutionError
    from app.tool_calling.function_callback import tool as tool

__all__ = [
    "Advisor",
    "AdvisorChain",
    "Approval",
    "ChatClient",
    "ChatModel",
    "ChatOptions",
    "ChatRequest",
    "ChatResponse",
    "Emit",
    "TextDelta",
    "ToolContext",
    "ToolExecutionError",
    "create_app",
    "tool",
]

__getattr__ = exporting(
    __name__,
    {
        "Advisor": "chat.advisors",
        "AdvisorChain": "chat.advisors",
        "ChatClient": "chat.client",
        "Approval": "chat.request",
        "ChatRequest": "chat.request",
        "Emit": "chat.request",
        "ChatModel": "chat_models.base",
        "ChatOptions": "chat_models.base",
        "ChatResponse": "chat_models.base",
        "TextDelta": "chat_models.base",
        "create_app": "main",
        "ToolContext": "tool_calling.context",
        "ToolExecutionError": "tool_calling.errors",
        "tool": "tool_calling.function_callback",
    },
)
