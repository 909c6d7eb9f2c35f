"""The header by which a client names its wish, so that it comes true once."""

from typing import Any

from fastapi import Header, Request

from app.errors import ValidationFailed

__all__ = ["KEY", "REPLAYED", "refuse_several_keys"]

KEY: Any = Header(
    alias="Idempotency-Key",
    pattern="^[ -~]{1,255}$",
    description="Names this wish: the same key with the same wish gets the first answer again. "
    "1 to 255 printable ASCII characters",
)
"""The header as a parameter of a route: ``Annotated[str, KEY]``."""

REPLAYED: dict[str, Any] = {
    "Idempotency-Replayed": {"description": "`true`: the first answer, again", "schema": {"type": "string"}}
}
"""The header of a repeated answer, for OpenAPI."""


async def refuse_several_keys(request: Request) -> None:
    """Let a request pass that names its wish once at most; raises ``ValidationFailed``."""
    if len(request.headers.getlist("idempotency-key")) > 1:
        raise ValidationFailed("Idempotency-Key: given more than once")
