"""An answer as JSON, with its whole trace."""

from typing import ClassVar

from pydantic_core import to_json

from app.api.answering.asked import Asked
from app.api.answering.format import WholeFormat
from app.chat_models.base import ChatResponse

__all__ = ["JsonDocument"]


class JsonDocument(WholeFormat):
    """The answer, the tool calls behind it, tokens and times: ``ChatAnswer`` in OpenAPI."""

    media_type = "application/json"
    documentation: ClassVar = {"schema": {"$ref": "#/components/schemas/ChatAnswer"}}

    def written(self, asked: Asked, response: ChatResponse) -> bytes:
        """See :meth:`WholeFormat.written`."""
        return to_json(asked.document(response), inf_nan_mode="strings")
