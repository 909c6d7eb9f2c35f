"""Answers to questions: the same answer in every form that clients ask for.

A form of its own is one file with a class derived from ``WholeFormat`` or ``StreamFormat``, and a line below.
"""

from app.api.answering.answers import answer, answer_prompt
from app.api.answering.format import AnswerFormat
from app.api.answering.json_document import JsonDocument
from app.api.answering.plain_text import PlainText
from app.api.answering.server_sent_events import ServerSentEvents

__all__ = ["ANSWER_FORMATS", "EVENTS", "answer", "answer_prompt"]

EVENTS = ServerSentEvents()

ANSWER_FORMATS: tuple[AnswerFormat, ...] = (PlainText(), JsonDocument(), EVENTS)
"""In the order in which ``*/*`` prefers them."""
