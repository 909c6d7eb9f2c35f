"""Which form of an answer the client wants (RFC 9110, section 12.5.1)."""

from enum import Enum
from functools import lru_cache

from app.errors import NotAcceptable

__all__ = ["AnswerForm", "negotiate"]


class AnswerForm(Enum):
    """The forms of one and the same answer; the first is the default."""

    TEXT = "text/plain"
    JSON = "application/json"
    EVENTS = "text/event-stream"


@lru_cache(maxsize=256)
def negotiate(accept: str | None, only: AnswerForm | None = None) -> AnswerForm:
    """Choose by quality, then by how exactly a form is named, then by the order of the header.

    Args:
        accept: the header, if there is one.
        only: the form of a route that gives one form.

    Raises:
        NotAcceptable: the header rules every form out.
    """
    if accept is None or not accept.strip():
        return only or AnswerForm.TEXT
    ranges = [_media_range(part) for part in accept[:4096].split(",")]
    forms = [only] if only else list(AnswerForm)
    best = max(((_rank(form, ranges), form) for form in forms), key=lambda ranked: ranked[0])
    if best[0][0] <= 0:
        raise NotAcceptable(_refusal(only))
    return best[1]


def _refusal(only: AnswerForm | None) -> str:
    if only:
        return f"the only form here is {only.value}"
    return f"Accept allows none of {', '.join(form.value for form in AnswerForm)}"


def _media_range(part: str) -> tuple[str, float]:
    name, *parameters = (piece.strip().lower() for piece in part.split(";"))
    quality = next((each[2:] for each in parameters if each.startswith("q=")), "1")
    try:
        return name, min(max(float(quality), 0.0), 1.0)
    except ValueError:
        return name, 0.0


def _rank(form: AnswerForm, ranges: list[tuple[str, float]]) -> tuple[float, int, int]:
    main_type = form.value.split("/", 1)[0]
    for exactness, wanted in ((2, form.value), (1, f"{main_type}/*"), (0, "*/*")):
        for position, (name, quality) in enumerate(ranges):
            if name == wanted:
                # Among forms that only a wildcard names, the order of the enumeration decides: max keeps the first.
                return quality, exactness, -position
    return 0.0, 0, 0
