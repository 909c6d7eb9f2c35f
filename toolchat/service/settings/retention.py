"""For how long conversations are stored: seconds, a number of hours or days, or for ever."""

import re
from typing import Annotated, Any

from pydantic import BeforeValidator

from toolchat.state.base import FOREVER

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
NEEDS_A_FILE = (
    "never needs a file or PostgreSQL as STATE_URL: memory is lost at a restart, and Redis has to hold all in memory"
)


def _seconds(value: Any) -> Any:
    if value == FOREVER or (isinstance(value, str) and value.strip().lower() == "never"):
        return FOREVER
    found = re.fullmatch(r"\s*([0-9.]+)\s*([smhd])\s*", value) if isinstance(value, str) else None
    try:
        seconds = float(found[1]) * _UNITS[found[2]] if found else float(value)
    except (TypeError, ValueError):
        raise ValueError("must be seconds, a time such as 12h or 30d, or never") from None
    if not 0 < seconds <= FOREVER / 8:
        raise ValueError("must be more than nothing and at most 25 years, or never")
    return seconds


Retention = Annotated[float, BeforeValidator(_seconds)]
"""Seconds after which a conversation expires, or :data:`FOREVER`."""
