"""On whose behalf a request is made."""

import re
from typing import Annotated

from fastapi import Depends, Header, Request

from app.api.ownership import owned
from app.callers import current_caller
from app.errors import ValidationFailed

__all__ = ["Owner", "Tenant", "tenant_of"]

_PATTERN = "[A-Za-z0-9][A-Za-z0-9_-]{0,63}"
_NOBODY = "zh"


def tenant_of(request: Request) -> str:
    """The tenant of a request: the name of its key, else what its header says.

    Raises:
        ValidationFailed: the header is malformed, or there more than once.
    """
    given = request.headers.getlist("x-tenant-id")
    if len(given) > 1:
        raise ValidationFailed("X-Tenant-ID: given more than once")
    if given and not re.fullmatch(_PATTERN, given[0]):
        raise ValidationFailed(f"X-Tenant-ID: String should match pattern '^{_PATTERN}$'")
    return current_caller.get().principal.name or (given[0] if given else _NOBODY)


async def _tenant(
    request: Request,
    _: Annotated[
        str,
        Header(
            alias="x-tenant-id",
            pattern=f"^{_PATTERN}$",
            description="On whose behalf; never from the model. With a key it is the key's name, whatever stands here",
        ),
    ] = _NOBODY,
) -> str:
    return tenant_of(request)


Tenant = Annotated[str, Depends(_tenant)]
"""The tenant of a request; 422 when it is malformed."""


async def _owner(tenant: Tenant) -> str:
    return owned(tenant)


Owner = Annotated[str, Depends(_owner)]
"""Under whose name something of the tenant is kept: a principal's is never one that only says it is that tenant."""
