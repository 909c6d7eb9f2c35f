"""An answer as its text alone."""

from typing import ClassVar

from app.api.answering.asked import Asked
from app.api.answering.format import WholeFormat
from app.chat_models.base import ChatResponse

__all__ = ["PlainText"]


class PlainText(WholeFormat):
    """What a client gets that asks for nothing else."""

    media_type = "text/plain"
    parameters = "; charset=utf-8"
    documentation: ClassVar = {"schema": {"type": "string"}, "example": "北京现在是 17:30。"}

    def written(self, asked: Asked, response: ChatResponse) -> bytes:  # noqa: ARG002
        """See :meth:`WholeFormat.written`."""
        return response.message.text.encode()
