"""Answers to questions, in every response format.

To add a format, write one file with a class derived from ``BufferedFormat`` or ``StreamFormat``, and add it below.
"""

from toolchat.service.api.responses.answers import answer, answer_once, answer_prompt
from toolchat.service.api.responses.event_stream import ServerSentEvents
from toolchat.service.api.responses.formats import AnswerFormat, JsonDocument, PlainText

EVENTS = ServerSentEvents()

ANSWER_FORMATS: tuple[AnswerFormat, ...] = (PlainText(), JsonDocument(), EVENTS)
"""In the order in which ``*/*`` prefers them."""
