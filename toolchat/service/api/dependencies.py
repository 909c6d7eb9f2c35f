"""Request dependencies: principal-scoped keys, the tenant, ``Idempotency-Key``, and cross-site protection."""

import re
from typing import Annotated, Any
from urllib.parse import urlsplit

from fastapi import Depends, Header, Request

from toolchat.errors import CrossSite, ValidationFailed
from toolchat.service.access.hosts import headers
from toolchat.service.access.principals import TENANT_PATTERN, current_request_caller
from toolchat.service.api.parameters import Parameter


def scoped_key(name: str) -> str:
    """Scope a key of the state store to the current principal."""
    # Another principal's data is therefore not refused but not found, by the same lookup in the same time, so that a
    # response never reveals whether an id of somebody else exists.
    return current_request_caller().principal.owner + name


def parts_of(conversation: str) -> tuple[str, ...]:
    """The list of the store for what belongs to a conversation and is deleted with it."""
    return (f"of:{conversation}",) if conversation else ()


def of_person(scoped: str) -> tuple[str, ...]:
    """The list of the store for all that belongs to a principal, whose stored names begin with its name and a slash."""
    owner = scoped[: scoped.rfind("/") + 1]
    return parts_of(owner)


def belonging_to(conversation: str = "") -> tuple[str, ...]:
    """The lists of a value that goes with its conversation, if it has one, and with its principal."""
    return (*parts_of(conversation), *of_person(conversation or scoped_key("")))


def session_of(conversation: str) -> str:
    """The session id of a conversation, without its principal; session ids contain no slash."""
    return conversation.rpartition("/")[2]


TENANT = Parameter(
    "X-Tenant-ID",
    {"type": "string", "pattern": f"^{TENANT_PATTERN}$"},
    "The tenant of tool calls, hidden from the model. With a key, the key's own tenant is used instead",
)
"""For the documentation; the guard reads it."""
Tenant = Annotated[str, Header(alias="x-tenant-id", pattern=TENANT.schema["pattern"], description=TENANT.description)]
"""The header ``X-Tenant-ID`` as a parameter of a route, for the documentation: ``current_caller`` has the value."""
_NO_TENANT = "zh"
"""The tenant if the client sends none, as in the documents whose examples the service has."""


def stored_tenant() -> str:
    return current_request_caller().tenant or _NO_TENANT


async def _owner(_: Tenant = "") -> str:
    return scoped_key(stored_tenant())


Owner = Annotated[str, Depends(_owner)]
"""The tenant's prefix for stored data; a client without a key cannot claim a principal's tenant."""


_KEY_PATTERN = "^[ -~]{1,255}$"
IDEMPOTENCY_KEY = Parameter(
    "Idempotency-Key",
    {"type": "string", "pattern": _KEY_PATTERN},
    "Repeating a request with the same key returns the first response. 1 to 255 printable ASCII characters",
)
"""For the documentation; :func:`idempotency_key` reads it."""
IdempotencyKey = Annotated[
    str, Header(alias=IDEMPOTENCY_KEY.name, pattern=_KEY_PATTERN, description=IDEMPOTENCY_KEY.description)
]
"""The header ``Idempotency-Key`` as a parameter of a route."""

REPLAYED: dict[str, Any] = {
    "Idempotency-Replayed": {
        "description": "`true`: the first response, repeated",
        "schema": {"type": "string"},
    }
}
"""The header of a repeated response, for OpenAPI."""


def idempotency_key(request: Request) -> str:
    """The value of ``Idempotency-Key``; empty without it."""
    given = headers(request.scope, b"idempotency-key")
    if len(given) > 1:
        raise ValidationFailed("Idempotency-Key: given more than once")
    if given and not re.search(_KEY_PATTERN, given[0]):
        raise ValidationFailed(f"Idempotency-Key: String should match pattern '{_KEY_PATTERN}'")
    return given[0] if given else ""


_PREFETCH_HEADERS = ("sec-purpose", "purpose", "x-moz")
_BROWSER_HEADERS = {b"sec-fetch-site", b"sec-fetch-dest", b"origin", b"referer", b"sec-purpose", b"purpose", b"x-moz"}


def refuse_cross_site(request: Request) -> None:
    """Reject a request that a browser sends for a page of another site (CSRF)."""
    # Browsers report it by Fetch Metadata, but only over HTTPS or to this machine; otherwise ``Origin`` or ``Referer``
    # names the page. A request with a key header is accepted, even if no key is configured: a page cannot add the
    # header without a CORS preflight, which the service refuses. Desktop clients whose pages are local files depend on
    # that, because they look like another site.
    if _BROWSER_HEADERS.isdisjoint([name for name, _ in request.scope["headers"]]):
        return  # the client is not a browser, as in nearly all cases
    given = request.headers
    site = given.get("sec-fetch-site", "").strip().lower()
    page = given.get("origin", given.get("referer") or None)
    if site in ("same-origin", "none") or (not site and page is None):
        return  # no page can forge the header; behind a proxy, Host may be another name than the page's
    # Other hosts of a domain are the same "site", but anybody may run them.
    if site != "cross-site" and page is not None and _is_ours(page, request):
        return
    is_allowed = given.get("origin", "").lower() in request.app.state.access.origins
    if not (is_allowed or current_request_caller().principal.name or _has_key_header(request)):
        raise CrossSite("a page of another site must not send this request")


def _has_key_header(request: Request) -> bool:
    """Whether a request has a header that needs a CORS preflight; not ``Basic``, which browsers add by themselves."""
    given = request.headers
    return "x-api-key" in given or given.get("authorization", "").lower().startswith("bearer ")


def _is_ours(page: str, request: Request) -> bool:
    """Whether a page is from the requested host; ``null``, the origin of a page that hides its own, is not."""
    own: str = request.app.state.access.own_address(request.scope)
    try:
        host = urlsplit(page).netloc.rpartition("@")[2].lower()
        return host in (request.headers.get("host", "").lower(), urlsplit(own).netloc.lower())
    except ValueError:
        return False


# Dependencies are coroutines, because FastAPI runs plain functions in a thread.
async def require_same_site(request: Request) -> None:
    """Reject a request that a browser sends for a page of another site (CSRF); a dependency of a route."""
    refuse_cross_site(request)


async def require_one_intent(request: Request) -> None:
    """As :func:`require_same_site`, for a request that takes effect once for each ``Idempotency-Key``."""
    refuse_cross_site(request)
    idempotency_key(request)


def reject_prefetch(request: Request) -> None:
    """Reject a GET with effects that no user or program intended: a prefetch, or an image or script of a page."""
    if _BROWSER_HEADERS.isdisjoint([name for name, _ in request.scope["headers"]]):
        return
    refuse_cross_site(request)
    given = request.headers
    if any("prefetch" in value.lower() for name in _PREFETCH_HEADERS for value in given.getlist(name)):
        raise CrossSite("this request has effects, so it must not be a prefetch")
    if given.get("sec-fetch-dest", "").strip().lower() not in ("", "empty", "document"):
        raise CrossSite("this request has effects, so it must not load an image, script or frame")
