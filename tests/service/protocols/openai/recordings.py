"""Requests of chat pages and editors, recorded or from their sources.

A file in ``recorded`` says where its requests come from. In it ``KEY`` stands for the user's key, and the value
``TOOLS`` for the list of the client's tools.
"""

from pathlib import Path
from typing import Any

from pydantic_core import from_json

__all__ = ["recording", "recordings"]

FOLDER = Path(__file__).parent / "recorded"


def recording(name: str) -> dict[str, Any]:
    """The requests of one client by their kind."""
    document: dict[str, Any] = from_json((FOLDER / f"{name}.json").read_bytes())
    for each in document.values():
        if isinstance(each, dict) and each.get("body", {}).get("tools") == "TOOLS":
            each["body"]["tools"] = document["tools"]
    return document


def recordings() -> dict[str, dict[str, Any]]:
    """The requests of all clients."""
    return {file.stem: recording(file.stem) for file in FOLDER.glob("*.json")}
