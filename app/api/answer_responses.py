"""What the routes of questions answer, for OpenAPI; the application's forms of an answer are filled in there."""

from typing import Any

from app.api.answering import EVENTS
from app.api.problems import problems
from app.api.schemas import ChatAnswer
from app.errors import CrossSite, QuotaExceeded, SessionBusy

__all__ = ["ANSWER_RESPONSES", "SESSION_RESPONSES", "STREAM_RESPONSES"]


def _header(description: str) -> dict[str, Any]:
    return {"description": description, "schema": {"type": "string"}}


_HEADERS = {
    "X-Chat-Model": _header("The model that answered"),
    "X-Sandbox": _header("Offered tools that answer from invented data"),
    "X-Finish-Reason": _header("Why the model stopped; `length` means that the answer was cut off"),
    "X-Request-ID": _header("The request's id"),
    "X-Toolchat-Overhead-Ms": _header("Milliseconds that the service itself took until the first byte"),
}
_IN_SESSION = _HEADERS | {"X-Session-ID": _header("The session, to go on with")}
_PROBLEMS = problems(CrossSite, 406, 422, QuotaExceeded, 500, 502, 503, 504)
_STOPPED: dict[int | str, dict[str, Any]] = {
    204: {"description": "A stream that a browser reconnects to (`Last-Event-ID`) is over: nobody is asked again"}
}
_ANSWER = {
    "description": "The answer, in the form that `Accept` asks for; text where it asks for none",
    "model": ChatAnswer,
}

ANSWER_RESPONSES: dict[int | str, dict[str, Any]] = {200: _ANSWER | {"headers": _HEADERS}, **_STOPPED, **_PROBLEMS}
"""Every status and media type that a question can be answered with."""

SESSION_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: _ANSWER | {"headers": _IN_SESSION},
    **_STOPPED,
    **_PROBLEMS,
    **problems(SessionBusy),
}
"""Every status with which a question in a session can be answered."""

STREAM_RESPONSES: dict[int | str, dict[str, Any]] = {
    **SESSION_RESPONSES,
    200: {
        "description": "The answer as server-sent events",
        "content": {EVENTS.media_type: EVENTS.documentation},
        "headers": _IN_SESSION,
    },
}
"""The same where the answer is always a stream."""
