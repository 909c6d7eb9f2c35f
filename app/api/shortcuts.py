"""Questions past the framework's routing, which documents them and answers whatever is not quite a question."""

from collections.abc import Awaitable, Callable, Mapping
from urllib.parse import unquote_to_bytes

from fastapi import Request, Response
from starlette.types import ASGIApp, Receive, Scope, Send

__all__ = ["Question", "Shortcuts"]

Question = Callable[[Request, str], Awaitable[Response]]
"""Answers a question that is within the limits; without ``query`` it is an empty one."""


class Shortcuts:
    """Takes a plain ``GET path?query=…`` by the shortest way.

    FastAPI matches routes one by one, opens exit stacks and builds models of parameters: four times the price of all
    else that is done to a question here. Whatever is unusual about a request (another method, another or a repeated
    parameter, a question outside the limits) goes to FastAPI's route of the same path and is told what is wrong.
    """

    def __init__(self, app: ASGIApp, questions: Mapping[str, Question], max_chars: int) -> None:
        self._app = app
        self._questions = questions
        self._max_chars = max_chars

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, here or by the framework."""
        question = self._questions.get(scope["path"]) if scope["type"] == "http" and scope["method"] == "GET" else None
        query = None if question is None else self._plain_query(scope["query_string"])
        if question is None or query is None:
            await self._app(scope, receive, send)
            return
        response = await question(Request(scope, receive), query)
        await response(scope, receive, send)

    def _plain_query(self, query_string: bytes) -> str | None:
        """The question, where nothing else is in the query string (UTF-8, checked) and nothing is to be objected to."""
        if not query_string:
            return ""
        if not query_string.startswith(b"query=") or b"&" in query_string:
            return None
        query = unquote_to_bytes(query_string[6:].replace(b"+", b" ")).decode()
        return query if not query or (query.strip() and len(query) <= self._max_chars) else None
