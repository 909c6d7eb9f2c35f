"""The stand-in for a chat model: no network, no key, no guesses."""

from app.chat_models.offline.model import OfflineChatModel

__all__ = ["OfflineChatModel"]
