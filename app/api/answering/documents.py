"""An answer as a plain object."""

from typing import Any

from app.chat_models.base import ChatResponse

__all__ = ["answer_document"]


def answer_document(response: ChatResponse, provider: str) -> dict[str, Any]:
    """An answer with its whole trace; ``provider`` is the client's own, which may not have answered."""
    return {
        "answer": response.message.text,
        "model": {"provider": response.provider or provider, "name": response.model},
        "finish_reason": response.finish_reason,
        "rounds": response.rounds,
        "tool_calls": [each.as_record() for each in response.executions],
        "usage": response.usage.as_record(),
    }
