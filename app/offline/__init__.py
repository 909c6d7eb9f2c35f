"""The chat model that answers without a key: it reads the question by a lexicon and lets the offered tools answer."""

from app.offline.model import OfflineChatModel

__all__ = ["OfflineChatModel"]
