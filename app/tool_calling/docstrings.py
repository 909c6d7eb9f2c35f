"""What a docstring tells a model."""

import inspect
import re
from collections.abc import Callable
from typing import Any

__all__ = ["described_arguments", "description_of"]


def description_of(function: Callable[..., Any]) -> str:
    """The first paragraph of a docstring on one line; empty without one."""
    return " ".join((inspect.getdoc(function) or "").split("\n\n", 1)[0].split())


def described_arguments(function: Callable[..., Any]) -> dict[str, str]:
    """By parameter, what the section ``Args`` of a Google style docstring says."""
    section = re.search(r"^Args:\n((?:[ \t]+.*\n?|\n)+)", inspect.getdoc(function) or "", re.MULTILINE)
    if section is None:
        return {}
    entries = re.findall(r"^ {4}\*{0,2}(\w+)[^:\n]*:[ ]*((?:.*)(?:\n {8,}.*)*)", section[1], re.MULTILINE)
    return {name: " ".join(text.split()) for name, text in entries}
