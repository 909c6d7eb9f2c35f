"""Chat models: one folder for each provider, and what they are to the rest."""

from typing import TYPE_CHECKING

from app.lazy import exporting

if TYPE_CHECKING:
    from app.chat_models.base import ChatModel as ChatModel
    from app.chat_models.base import ChatOptions as ChatOptions
    from app.chat_models.base import ChatResponse as ChatResponse
    from app.chat_models.base import EmitModelEvent as EmitModelEvent
    from app.chat_models.base import ModelEvent as ModelEvent
    from app.chat_models.base import Progress as Progress
    from app.chat_models.base import Prompt as Prompt
    from app.chat_models.base import TextDelta as TextDelta
    from app.chat_models.resilient import ResilientChatModel as ResilientChatModel
    from app.chat_models.resilient import RetryPolicy as RetryPolicy

__all__ = [
    "ChatModel",
    "ChatOptions",
    "ChatResponse",
    "EmitModelEvent",
    "ModelEvent",
    "Progress",
    "Prompt",
    "ResilientChatModel",
    "RetryPolicy",
    "TextDelta",
]

__getattr__ = exporting(
    __name__,
    {
        "ChatModel": "base",
        "ChatOptions": "base",
        "ChatResponse": "base",
        "EmitModelEvent": "base",
        "ModelEvent": "base",
        "Progress": "base",
        "Prompt": "base",
        "TextDelta": "base",
        "ResilientChatModel": "resilient",
        "RetryPolicy": "resilient",
    },
)
