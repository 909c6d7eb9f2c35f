"""An answer as a plain object."""

from typing import Any

from app.chat_models.base import ChatResponse

__all__ = ["answer_document", "usage_record"]


def answer_document(response: ChatResponse, provider: str) -> dict[str, Any]:
    """An answer with its whole trace."""
    return {
        "answer": response.message.text,
        "model": {"provider": provider, "name": response.model},
        "finish_reason": response.finish_reason,
        "rounds": response.rounds,
        "tool_calls": [each.as_record() for each in response.executions],
        "usage": usage_record(response),
    }


def usage_record(response: ChatResponse) -> dict[str, int]:
    """The tokens of all turns together."""
    usage = response.usage
    record = {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens,
    }
    if usage.cached_tokens:
        record["cached_tokens"] = usage.cached_tokens
    if usage.reasoning_tokens:
        record["reasoning_tokens"] = usage.reasoning_tokens
    return record
