"""What belongs to whom: everything that a principal makes is kept under its name."""

import re
from typing import Annotated, Any
from urllib.parse import urlsplit

from fastapi import Depends, Header, Request

from app.access.principals import current_request_caller
from toolchat.errors import CrossSite, ValidationFailed

__all__ = [
    "KEY",
    "REPLAYED",
    "Owner",
    "Tenant",
    "refuse_cross_site",
    "refuse_several_keys",
    "reject_prefetch",
    "require_same_site",
    "scoped_key",
    "session_of",
    "tenant_of",
]


def scoped_key(name: str) -> str:
    """The name under which something of the current caller is kept.

    Somebody else's is therefore not refused but not there: the same look-up finds nothing, in the same time.
    """
    return current_request_caller().principal.owner + name


def session_of(conversation: str) -> str:
    """The session id of a conversation, without its owner; no session id holds a slash."""
    return conversation.rpartition("/")[2]


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
    return current_request_caller().principal.name or (given[0] if given else _NOBODY)


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
    return scoped_key(tenant)


Owner = Annotated[str, Depends(_owner)]
"""Under whose name something of the tenant is kept: a principal's is never one that only says it is that tenant."""


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


_LOOKING_AHEAD = ("sec-purpose", "purpose", "x-moz")
_OF_BROWSERS = {b"sec-fetch-site", b"sec-fetch-dest", b"origin", b"referer", b"sec-purpose", b"purpose", b"x-moz"}


def refuse_cross_site(request: Request) -> None:
    """Let a request pass unless a browser sends it on behalf of another site.

    Browsers say so by Fetch Metadata, but not to services that they reach over plain HTTP by a name or an address
    other than this machine's; there ``Origin`` or ``Referer`` names the page. Whoever bears a key is let through:
    no page can add a key that it does not know, and a browser adds none by itself. So is who bears one where none is
    known: a browser asks the service before it sends a page's key to it, and is told no (CORS). Programs whose window
    is a file and that do without that question, as desktop clients do, look like another site's page otherwise.

    Raises:
        CrossSite: it does.
    """
    headers = request.headers
    site = headers.get("sec-fetch-site", "").strip().lower()
    page = headers.get("origin", headers.get("referer") or None)
    if site != "cross-site" and (site or page is None or _is_ours(page, headers.get("host", ""))):
        return
    if not (current_request_caller().principal.name or _bears_a_key(request) or _is_allowed(request)):
        raise CrossSite("a page of another site must not ask for this")


def _bears_a_key(request: Request) -> bool:
    """Whether a request has what no page can send unasked; ``Basic`` is not that, for browsers add it by themselves."""
    headers = request.headers
    return "x-api-key" in headers or headers.get("authorization", "").lower().startswith("bearer ")


def _is_allowed(request: Request) -> bool:
    return request.headers.get("origin", "").lower() in request.app.state.access.origins


def _is_ours(page: str, host: str) -> bool:
    """Whether a page came from the host that it asks; ``null``, the origin of a page that hides its own, did not."""
    try:
        return urlsplit(page).netloc.rpartition("@")[2].lower() == host.lower()
    except ValueError:
        return False


async def require_same_site(request: Request) -> None:
    """The same as a dependency; a coroutine, since FastAPI calls plain functions in a thread."""
    refuse_cross_site(request)


def reject_prefetch(request: Request) -> None:
    """Let a GET pass that a user or a program meant: no prefetch, no image or script of some page.

    Raises:
        CrossSite: it is one of those.
    """
    if _OF_BROWSERS.isdisjoint([name for name, _ in request.scope["headers"]]):
        return  # a program asks, as nearly always
    refuse_cross_site(request)
    headers = request.headers
    if any("prefetch" in value.lower() for name in _LOOKING_AHEAD for value in headers.getlist(name)):
        raise CrossSite("this has effects, so it is not prefetched")
    if headers.get("sec-fetch-dest", "").strip().lower() not in ("", "empty", "document"):
        raise CrossSite("this has effects, so it is no image, script or frame")
