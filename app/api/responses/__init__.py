"""Answers to questions, in every response format.

To add a format, write one file with a class derived from ``BufferedFormat`` or ``StreamFormat``, and add it below.
"""

from app.api.responses.answers import answer, answer_once, answer_prompt
from app.api.responses.event_stream import ServerSentEvents
from app.api.responses.formats import AnswerFormat, JsonDocument, PlainText

__all__ = ["ANSWER_FORMATS", "EVENTS", "answer", "answer_once", "answer_prompt"]

EVENTS = ServerSentEvents()

ANSWER_FORMATS: tuple[AnswerFormat, ...] = (PlainText(), JsonDocument(), EVENTS)
"""In the order in which ``*/*`` prefers them."""
