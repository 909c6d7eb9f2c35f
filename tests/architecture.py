"""What the files of the three layers import."""

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
FILES = sorted(file for package in ("app", "toolchat") for file in (ROOT / package).rglob("*.py"))


def name_of(file: Path) -> str:
    """The dotted name of a file."""
    return ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def layer_of(name: str) -> str:
    """The package of a layer that a dotted name belongs to."""
    return "toolchat.service" if f"{name}.".startswith("toolchat.service.") else name.partition(".")[0]


@cache
def tree_of(file: Path) -> ast.Module:
    """The syntax tree of a file; several tests look at it."""
    return ast.parse(file.read_text(encoding="utf-8"))


@cache
def imports(file: Path) -> frozenset[str]:
    """The names of our files that a file imports, at its head or within a function."""
    found: set[str] = set()
    for node in ast.walk(tree_of(file)):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: imports are absolute"
            found.update(imported(node))
        elif isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
    return frozenset(name for name in found if name.split(".")[0] in ("app", "toolchat"))


def imported(node: ast.ImportFrom) -> set[str]:
    """What an import names: ``from toolchat.chat import client`` a file, ``from toolchat import tool`` part of one."""
    below = {f"{node.module}.{alias.name}" for alias in node.names}
    return {each if each in _names() else str(node.module) for each in below}


@cache
def _names() -> frozenset[str]:
    return frozenset(map(name_of, FILES))
