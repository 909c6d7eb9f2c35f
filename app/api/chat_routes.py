"""The three variants in which every tool folder is asked, as one route shape."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from enum import Enum
from typing import Annotated, Any, Literal
from urllib.parse import parse_qsl

from fastapi import APIRouter, Query, Request, Response
from fastapi.openapi.models import Example

from app.api.answers import answer
from app.api.problems import problems
from app.api.schemas import ChatAnswer
from app.api.shortcuts import Question
from app.api.state import service_state
from app.errors import ValidationFailed

__all__ = ["ANSWER_RESPONSES", "MAX_QUERY_CHARS", "VariantRouter", "checked_query", "variant_router"]

MAX_QUERY_CHARS = 4000
"""Longest question; even all Chinese and percent-encoded it stays below the server's 64 KiB for a URL."""

_EVENTS_EXAMPLE = (
    'event: delta\ndata: {"text":"北京现在是 17:30。"}\n\nevent: done\ndata: {"answer":"北京现在是 17:30。"}\n\n'
)

ANSWER_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The answer, in the form that `Accept` asks for",
        "model": ChatAnswer,
        "content": {
            "text/plain": {"schema": {"type": "string"}, "example": "北京现在是 17:30。"},
            "text/event-stream": {"schema": {"type": "string"}, "example": _EVENTS_EXAMPLE},
        },
        "headers": {
            "X-Chat-Model": {"description": "The model that answered", "schema": {"type": "string"}},
            "X-Sandbox": {"description": "Offered tools that answer from invented data", "schema": {"type": "string"}},
            "X-Finish-Reason": {
                "description": "Why the model stopped; `length` means that the answer was cut off",
                "schema": {"type": "string"},
            },
            "X-Request-ID": {"description": "The request's id", "schema": {"type": "string"}},
        },
    },
    **problems(400, 406, 414, 422, 500, 502, 503, 504),
}
"""Every status and media type that a question can be answered with."""

Variant = Literal["none", "function", "method"]

_SUMMARIES = {
    "none": "No tool: the model answers from what it knows",
    "function": "Function tool, found by its name: {names}",
    "method": "Method tool, a marked method of an object: {names}",
}
_DESCRIPTIONS = {
    "none": "The question goes to the model alone, for comparison with the other two variants.",
    "function": "The model is offered the folder's function tools by name, decides whether to call them, and answers "
    "from their results.",
    "method": "The model is offered the marked methods of the folder's tool object: the same tool, given otherwise.",
}
_SUFFIX = {"none": "chat", "function": "chat-tool-function", "method": "chat-tool-method"}


class VariantRouter(APIRouter):
    """The routes of a tool folder's questions, and by which functions these are answered."""

    def __init__(self, prefix: str = "", tags: list[str | Enum] | None = None) -> None:
        super().__init__(prefix=prefix, tags=tags)
        self.questions: dict[str, Question] = {}
        """By path; see :class:`~app.api.shortcuts.Shortcuts`."""


def variant_router(
    *,
    module: str,
    path: str,
    title: str,
    default_query: str,
    examples: Mapping[str, str],
    function_names: Sequence[str],
    method_names: Sequence[str],
) -> VariantRouter:
    """Make the routes ``/chat``, ``/chat-tool-function`` and ``/chat-tool-method`` of one tool folder.

    Args:
        module: the folder's name, by which its tools are looked up.
        path: the prefix of the routes.
        title: the tag in the documentation.
        default_query: asked when ``query`` is missing or empty.
        examples: further questions for the documentation, by label.
        function_names: the folder's function tools; without any there is no such route.
        method_names: the folder's method tools; without any there is no such route.
    """
    router = VariantRouter(prefix=path, tags=[title])
    shown = {"默认 / default": Example(value=default_query)}
    shown |= {label: Example(value=query) for label, query in examples.items()}
    variants: dict[Variant, Sequence[str]] = {"none": ("",), "function": function_names, "method": method_names}
    for variant, names in variants.items():
        if not names:
            continue
        question = _question(module, variant, default_query)
        router.questions[f"{path}/{_SUFFIX[variant]}"] = question
        router.add_api_route(
            f"/{_SUFFIX[variant]}",
            _endpoint(question, default_query, shown),
            response_class=Response,
            responses=ANSWER_RESPONSES,
            summary=_SUMMARIES[variant].format(names=", ".join(names)),
            description=_DESCRIPTIONS[variant],
            operation_id=f"{module}_{_SUFFIX[variant].replace('-', '_')}",
        )
    return router


def checked_query(request: Request, query: str, default: str) -> str:
    """The question to ask: the given one, or the default when it is missing or empty, as in Spring.

    Raises:
        ValidationFailed: it is blank, or given more than once.
    """
    raw = request.scope["query_string"]
    if raw.count(b"query") > 1 and sum(name == "query" for name, _ in parse_qsl(raw.decode(), True)) > 1:
        raise ValidationFailed("query: given more than once")
    if query and not query.strip():
        raise ValidationFailed("query: must not be blank")
    return query or default


def _question(module: str, variant: Variant, default_query: str) -> Question:
    async def ask(request: Request, query: str) -> Response:
        tools = () if variant == "none" else service_state(request).tools.offered(module, variant)
        return await answer(request, query or default_query, tools)

    return ask


def _endpoint(ask: Question, default_query: str, examples: dict[str, Example]) -> Callable[..., Awaitable[Response]]:
    question = Query(
        description="The question. Missing or empty: the default.",
        max_length=MAX_QUERY_CHARS,
        openapi_examples=examples,
    )

    async def endpoint(request: Request, query: Annotated[str, question] = default_query) -> Response:
        return await ask(request, checked_query(request, query, default_query))

    return endpoint
