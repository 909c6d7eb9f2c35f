"""Which form of an answer the client wants (RFC 9110, section 12.5.1)."""

from collections.abc import Sequence
from functools import lru_cache

from fastapi import Request

from app.api.answering.format import AnswerFormat
from app.errors import NotAcceptable

__all__ = ["acceptable", "negotiate"]


def acceptable(request: Request, only: AnswerFormat | None = None) -> AnswerFormat:
    """Choose the form that a request accepts.

    Args:
        request: the HTTP request; its application has the forms in the order in which ``*/*`` prefers them.
        only: the form of a route that gives one form.

    Raises:
        NotAcceptable: the header rules every form out.
    """
    if only is not None and not only.negotiated:
        return only
    forms: tuple[AnswerFormat, ...] = (only,) if only else request.app.state.answer_formats
    accept = [value.decode("latin-1") for name, value in request.scope["headers"] if name == b"accept"]
    return negotiate(",".join(accept), forms)


@lru_cache(maxsize=256)
def negotiate(accept: str, forms: tuple[AnswerFormat, ...]) -> AnswerFormat:
    """Choose by quality, then by how exactly a form is named, then by the order of the header.

    Raises:
        NotAcceptable: the header rules every form out.
    """
    if not accept.strip():
        return forms[0]
    ranges = [_media_range(part) for part in accept[:4096].split(",")]
    rank, best = max(((_rank(form, ranges), form) for form in forms), key=lambda ranked: ranked[0])
    if rank[0] <= 0:
        raise NotAcceptable(_refusal(forms))
    return best


def _refusal(forms: Sequence[AnswerFormat]) -> str:
    if len(forms) == 1:
        return f"the only form here is {forms[0].media_type}"
    return f"Accept allows none of {', '.join(form.media_type for form in forms)}"


def _media_range(part: str) -> tuple[str, float]:
    name, *parameters = (piece.strip().lower() for piece in part.split(";"))
    quality = next((each[2:] for each in parameters if each.startswith("q=")), "1")
    try:
        return name, min(max(float(quality), 0.0), 1.0)
    except ValueError:
        return name, 0.0


def _rank(form: AnswerFormat, ranges: list[tuple[str, float]]) -> tuple[float, int, int]:
    main_type = form.media_type.split("/", 1)[0]
    for exactness, wanted in ((2, form.media_type), (1, f"{main_type}/*"), (0, "*/*")):
        for position, (name, quality) in enumerate(ranges):
            if name == wanted:
                # Among forms that only a wildcard names, their own order decides: max keeps the first.
                return quality, exactness, -position
    return 0.0, 0, 0
