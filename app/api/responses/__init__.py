"""Answers to questions: the same answer in every form that clients ask for.

A form of its own is one file with a class derived from ``BufferedFormat`` or ``StreamFormat``, and a line below.
"""

from app.api.responses.answers import answer, answer_prompt
from app.api.responses.formats import AnswerFormat, JsonDocument, PlainText, ServerSentEvents

__all__ = ["ANSWER_FORMATS", "EVENTS", "answer", "answer_prompt"]

EVENTS = ServerSentEvents()

ANSWER_FORMATS: tuple[AnswerFormat, ...] = (PlainText(), JsonDocument(), EVENTS)
"""In the order in which ``*/*`` prefers them."""
