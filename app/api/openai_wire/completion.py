"""A whole answer as OpenAI's chat completion."""

from typing import Any, ClassVar

from fastapi import Response
from pydantic_core import to_json

from app.api.answering.asked import Asked
from app.api.answering.format import WholeFormat
from app.api.openai_wire.errors import error_response
from app.api.openai_wire.kept_calls import keep_calls
from app.api.openai_wire.limits import limit_headers
from app.api.openai_wire.wish import Wish, call_documents, consent_link, finish_reason, note_headers, usage_document
from app.chat_models.base import ChatResponse
from app.errors import ToolchatError

__all__ = ["Completion"]


class Completion(WholeFormat):
    """The answer with the calls that the client must run, and the tokens."""

    media_type = "application/json"
    documentation: ClassVar = {"schema": {"type": "object"}}
    negotiated = False

    def __init__(self, wish: Wish) -> None:
        self._wish = wish

    async def finished(self, asked: Asked, response: ChatResponse) -> ChatResponse:
        """See :meth:`AnswerFormat.finished`; keeps what the client does not know of."""
        return await keep_calls(asked.service.store, response, self._wish.theirs) if self._wish.theirs else response

    def refused(self, asked: Asked, error: ToolchatError) -> Response:
        """See :meth:`AnswerFormat.refused`."""
        asked.note_failure(error)
        return error_response(error, asked.request_id)

    def written(self, asked: Asked, response: ChatResponse) -> bytes:
        """See :meth:`WholeFormat.written`."""
        wish = self._wish
        note_headers(asked, wish)
        asked.headers |= limit_headers(asked.spending.headers)
        calls = call_documents(response, wish.theirs)
        choice = {
            "index": 0,
            "message": _message(response, calls, consent_link(asked, wish)),
            "logprobs": None,
            "finish_reason": finish_reason(response, has_calls=bool(calls)),
        }
        document = {
            "id": wish.identifier,
            "object": "chat.completion",
            "created": wish.created,
            "model": wish.model,
            "choices": [choice],
            "usage": usage_document(response.usage),
        }
        return to_json(document | ({"approval": asked.pending} if asked.pending else {}))


def _message(response: ChatResponse, calls: list[dict[str, Any]], link: str) -> dict[str, Any]:
    text = response.message.text + link
    message: dict[str, Any] = {"role": "assistant", "content": text if text or not calls else None, "refusal": None}
    if calls:
        message["tool_calls"] = calls
    extra = response.message.extra
    if isinstance(reasoning := extra.get("reasoning_content") or extra.get("reasoning"), str):
        message["reasoning_content"] = reasoning
    return message
