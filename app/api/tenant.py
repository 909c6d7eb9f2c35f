"""On whose behalf a request is made."""

from typing import Annotated

from fastapi import Depends, Header, Request

from app.api.ownership import owned
from app.callers import current_caller
from app.errors import ValidationFailed

__all__ = ["Owner", "Tenant"]


async def _tenant(
    request: Request,
    x_tenant_id: Annotated[
        str,
        Header(
            pattern="^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$",
            description="On whose behalf; never from the model. With a key it is the key's name, whatever stands here",
        ),
    ] = "zh",
) -> str:
    if len(request.headers.getlist("x-tenant-id")) > 1:
        raise ValidationFailed("X-Tenant-ID: given more than once")
    return current_caller.get().principal.name or x_tenant_id


Tenant = Annotated[str, Depends(_tenant)]
"""The tenant of a request; 422 when it is malformed."""


async def _owner(tenant: Tenant) -> str:
    return owned(tenant)


Owner = Annotated[str, Depends(_owner)]
"""Under whose name something of the tenant is kept: a principal's is never one that only says it is that tenant."""
