"""What the examples' routes share."""

from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Header, Query, Request
from fastapi.openapi.models import Example

from app.api.chat_routes import MAX_QUERY_CHARS
from app.api.state import service_state
from app.chat.client import PromptSpec
from app.errors import ValidationFailed

__all__ = ["Tenant", "asked", "component", "prompt"]

_T = TypeVar("_T")


def asked(default: str, examples: Mapping[str, str]) -> Any:
    """Document the parameter ``query`` of an example."""
    shown = {"默认 / default": Example(value=default)}
    return Query(
        description="The question. Missing or empty: the default.",
        max_length=MAX_QUERY_CHARS,
        openapi_examples=shown | {label: Example(value=query) for label, query in examples.items()},
    )


async def component(request: Request, kind: type[_T], name: str = "") -> _T:
    """Take an object out of the container, by its type and, where it has one, its name."""
    return await service_state(request).container.get(kind, component=name)


def prompt(request: Request, query: str, *tools: object) -> PromptSpec:
    """Begin a question with tools."""
    return service_state(request).chat.prompt(query).tools(*tools)


def _tenant(
    request: Request,
    x_tenant_id: Annotated[
        str, Header(pattern="^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$", description="On whose behalf; never from the model")
    ] = "zh",
) -> str:
    if len(request.headers.getlist("x-tenant-id")) > 1:
        raise ValidationFailed("X-Tenant-ID: given more than once")
    return x_tenant_id


Tenant = Annotated[str, Depends(_tenant)]
"""The tenant of a request; 422 when it is malformed."""
