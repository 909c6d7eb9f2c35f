"""Who must not cause effects by a GET: a page of another site, and a browser that only looks ahead."""

from fastapi import Request

from app.errors import CrossSite

__all__ = ["from_this_site", "refuse_cross_site", "refuse_unasked_get"]

_LOOKING_AHEAD = ("sec-purpose", "purpose", "x-moz")


def refuse_cross_site(request: Request) -> None:
    """Let a request pass unless a browser says that another site sends it (Fetch Metadata); raises ``CrossSite``."""
    if request.headers.get("sec-fetch-site", "").strip().lower() == "cross-site":
        raise CrossSite("a page of another site must not ask for this")


async def from_this_site(request: Request) -> None:
    """The same as a dependency; a coroutine, since FastAPI calls plain functions in a thread."""
    refuse_cross_site(request)


def refuse_unasked_get(request: Request) -> None:
    """Let a GET pass that a user or a program meant: no prefetch, no image or script of some page.

    Raises:
        CrossSite: it is one of those.
    """
    refuse_cross_site(request)
    headers = request.headers
    if any("prefetch" in value.lower() for name in _LOOKING_AHEAD for value in headers.getlist(name)):
        raise CrossSite("this has effects, so it is not prefetched")
    if headers.get("sec-fetch-dest", "").strip().lower() not in ("", "empty", "document"):
        raise CrossSite("this has effects, so it is no image, script or frame")
