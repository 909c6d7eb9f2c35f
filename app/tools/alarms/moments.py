"""From the ISO-8601 text that a model writes to the moment of an alarm."""

import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from app.tool_calling.errors import ToolExecutionError

__all__ = ["due_at"]

_FARTHEST = timedelta(days=366)
_DURATION = re.compile(
    r"P(?=.)(?:([0-9]{1,6})W)?(?:([0-9]{1,6})D)?"
    r"(?:T(?=.)(?:([0-9]{1,6})H)?(?:([0-9]{1,6})M)?(?:([0-9]{1,9}(?:\.[0-9]{1,6})?)S)?)?",
    re.ASCII,
)
_HINT = "use a date and time such as 2030-01-31T07:30:00+08:00, or a duration from now such as PT10M"


def due_at(text: str, asked_at: datetime, zone: ZoneInfo) -> tuple[datetime, str]:
    """Read an absolute time, or a duration counted from the moment of asking.

    Args:
        text: what the model wrote.
        asked_at: when the question came in; the same for all calls of one question, so that a call made twice means
            the same moment.
        zone: the zone of a time that names no offset.

    Returns:
        The moment in UTC, and the canonical text of what was asked for.

    Raises:
        ToolExecutionError: it is neither (``invalid-time``), left out by clocks that are put forward
            (``no-such-time``), past (``past-time``), or more than a year ahead (``too-far``).
    """
    duration = _duration(text.strip())
    due = _absolute(text.strip(), zone) if duration is None else asked_at + min(duration, 2 * _FARTHEST)
    now = datetime.now(UTC)
    if due < now and (duration is None or not duration):
        said = f"it is {now.astimezone(zone).isoformat(timespec='seconds')} now"
        raise ToolExecutionError(f"this time is past: {said}", kind="past-time", hint=_HINT)
    if due > now + _FARTHEST:
        raise ToolExecutionError("this time is more than a year ahead", kind="too-far", hint="set it later")
    return due, due.isoformat() if duration is None else f"PT{duration.total_seconds():g}S"


def _duration(text: str) -> timedelta | None:
    match = _DURATION.fullmatch(text.upper())
    if match is None:
        return None
    weeks, days, hours, minutes, seconds = (float(each or 0) for each in match.groups())
    return timedelta(weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds)


def _absolute(text: str, zone: ZoneInfo) -> datetime:
    try:
        if not re.search(r"[0-9][T ][0-9]", text, re.IGNORECASE):
            raise ValueError("no time of day")
        moment = datetime.fromisoformat(text.upper())
        due = (moment if moment.tzinfo else moment.replace(tzinfo=zone)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise ToolExecutionError("the time is not in ISO-8601", kind="invalid-time", hint=_HINT) from None
    if moment.tzinfo is None and due.astimezone(zone).replace(tzinfo=None) != moment:
        said = f"clocks in {zone.key} are put forward then; there is no {moment:%H:%M} on that day"
        raise ToolExecutionError(said, kind="no-such-time", hint="ask for another time, or name an offset from UTC")
    return due
