"""Where a principal stands with its quotas, in the names that OpenAI's headers have."""

import re
from collections.abc import Mapping

__all__ = ["limit_headers"]

_KINDS = {"minute": "requests", "day": "tokens"}
"""What OpenAI's headers can tell of our quotas; how many at once they have no word for."""
_POLICY = re.compile(r'"(\w+)";q=(\d+)')
_STATE = re.compile(r'"(\w+)";r=(\d+);t=(\d+)')


def limit_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Say once more what ``RateLimit-Policy`` and ``RateLimit`` say; nothing where they are not there."""
    limits = dict(_POLICY.findall(headers.get("RateLimit-Policy", "")))
    told: dict[str, str] = {}
    for name, remaining, seconds in _STATE.findall(headers.get("RateLimit", "")):
        if kind := _KINDS.get(name):
            told |= {
                f"x-ratelimit-limit-{kind}": limits[name],
                f"x-ratelimit-remaining-{kind}": remaining,
                f"x-ratelimit-reset-{kind}": f"{seconds}s",
            }
    return told
