"""Principals of a service: their keys, and what they send."""

from itertools import count
from pathlib import Path

import httpx

from toolchat.service.access.keys import digest_of

__all__ = ["alike", "as_", "principals"]

_TOOLS = {"alice": "*", "bob": "*", "narrow": "getCityTime*"}
_numbers = count(1)


def principals(folder: Path, **more: str) -> dict[str, str]:
    """The variables of a service with two principals, and one who may not use much; each one's key is its name.

    Args:
        folder: where the key file is written.
        **more: what the entry of a principal says besides.
    """
    file = folder / "keys.toml"
    entries = [
        f'[[keys]]\nname = "{name}"\nsha256 = "{digest_of(name)}"\ntools = ["{tools}"]\n{more.get(name, "")}\n'
        for name, tools in _TOOLS.items()
    ]
    file.write_text("".join(entries))
    return {"API_KEYS_FILE": str(file), "TRUSTED_PROXIES": "127.0.0.1"}


def as_(name: str, **more: str) -> dict[str, str]:
    """The headers of a principal, or of nobody; each time from another address, so that no fault slows another."""
    came = {"X-Forwarded-For": f"2001:db8::{next(_numbers):x}"}
    return ({"X-API-Key": name} if name else {}) | came | more


def alike(answer: httpx.Response) -> dict[str, object]:
    """A problem without what differs each time."""
    document: dict[str, object] = answer.json()
    document.pop("request_id")
    return document
