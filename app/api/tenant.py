"""On whose behalf a request is made."""

from typing import Annotated

from fastapi import Depends, Header, Request

from app.errors import ValidationFailed

__all__ = ["Tenant"]


async def _tenant(
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
