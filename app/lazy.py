"""Packages that export names and load a module only when one of its names is asked for (PEP 562)."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

__all__ = ["exporting"]


def exporting(package: str, places: Mapping[str, str]) -> Callable[[str], Any]:
    """Make the ``__getattr__`` of a package.

    Args:
        package: the package's own name.
        places: the modules below the package by the names that it exports from them.
    """

    def find(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{places[name]}"), name)

    return find
