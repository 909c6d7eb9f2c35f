"""Who must not cause effects without being meant: a page of another site, and a browser that only looks ahead."""

from urllib.parse import urlsplit

from fastapi import Request

from app.callers import current_caller
from app.errors import CrossSite

__all__ = ["from_this_site", "refuse_cross_site", "refuse_unasked_get"]

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
    if not (current_caller.get().principal.name or _bears_a_key(request) or _is_allowed(request)):
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


async def from_this_site(request: Request) -> None:
    """The same as a dependency; a coroutine, since FastAPI calls plain functions in a thread."""
    refuse_cross_site(request)


def refuse_unasked_get(request: Request) -> None:
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
