"""The three variants in which every tool folder is asked, as one route shape."""

from collections.abc import Mapping, Sequence
from typing import Literal

from fastapi import APIRouter, Request, Response

from app.api.answering import answer
from app.api.questions import Ask, QuestionParameter, QuestionRoute, question_routes
from app.api.service import service_state

__all__ = ["add_variants"]

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


def add_variants(
    router: APIRouter,
    *,
    module: str,
    path: str,
    title: str,
    default_query: str,
    examples: Mapping[str, str],
    function_names: Sequence[str],
    method_names: Sequence[str],
) -> None:
    """Add the routes ``/chat``, ``/chat-tool-function`` and ``/chat-tool-method`` of one tool folder.

    Args:
        router: the application's router, or one that is included there.
        module: the folder's name, by which its tools are looked up.
        path: the prefix of the routes.
        title: the tag in the documentation.
        default_query: asked when ``query`` is missing or empty.
        examples: further questions for the documentation, by label.
        function_names: the folder's function tools; without any there is no such route.
        method_names: the folder's method tools; without any there is no such route.
    """
    question = QuestionParameter(default_query, examples)
    variants: dict[Variant, Sequence[str]] = {"none": ("",), "function": function_names, "method": method_names}
    for variant, names in variants.items():
        if names:
            question_routes(
                router,
                f"{path}/{_SUFFIX[variant]}",
                question,
                route_class_override=QuestionRoute,
                tags=[title],
                summary=_SUMMARIES[variant].format(names=", ".join(names)),
                description=_DESCRIPTIONS[variant],
            )(_ask(module, variant, question))


def _ask(module: str, variant: Variant, question: QuestionParameter) -> Ask:
    async def ask(request: Request) -> Response:
        request.scope["state"]["variant"] = variant
        tools = () if variant == "none" else service_state(request).tools.offered(module, variant)
        return await answer(request, await question.read(request), tools)

    return ask
