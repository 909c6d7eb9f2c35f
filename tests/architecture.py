"""The module graph of the three layers, read from the imports. Run as a script, it draws ``docs/architecture.svg``."""

import ast
from functools import cache
from pathlib import Path

__all__ = [
    "FILES",
    "PACKAGES",
    "PICTURE",
    "ROOT",
    "dependencies",
    "draw",
    "imported",
    "imports",
    "layer_of",
    "levels",
    "module_of",
    "name_of",
    "tree_of",
]

ROOT = Path(__file__).parent.parent
PICTURE = ROOT / "docs" / "architecture.svg"
PACKAGES = {
    "toolchat": [
        *("messages", "errors", "instruments", "http", "state", "tool_calling", "models", "testing", "chat", "exports"),
    ],
    "toolchat.service": [
        *("settings", "observability", "access", "offline", "mcp_client", "api", "pages", "protocols"),
        *("tool_modules", "composition", "main", "exports", "server", "cli"),
    ],
    "app": ["places", "sandbox", "user_clock", "upstreams", "tools", "main", "__main__"],
}
"""The layers, from below, with their modules: the files and folders at the root of each package."""
FILES = sorted(file for package in ("app", "toolchat") for file in (ROOT / package).rglob("*.py"))


def name_of(file: Path) -> str:
    """The dotted name of a file."""
    return ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def module_of(name: str) -> str:
    """The module that a dotted name belongs to, such as ``toolchat.service.api``; empty for a package itself."""
    package = layer_of(name)
    return ".".join(name.split(".")[: package.count(".") + 2]) if name != package else ""


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


@cache
def dependencies() -> dict[str, set[str]]:
    """The modules that each module imports."""
    graph: dict[str, set[str]] = {f"{package}.{name}": set() for package, names in PACKAGES.items() for name in names}
    for file in FILES:
        here = module_of(name_of(file))
        for name in imports(file):
            if here and module_of(name) not in ("", here):
                graph.setdefault(here, set()).add(module_of(name))
    return graph


def levels() -> dict[str, int]:
    """The level of each module: 0 without dependencies, otherwise one above its highest dependency.

    Raises:
        RecursionError: modules import each other in a circle.
    """
    graph = dependencies()

    @cache
    def level(module: str) -> int:
        return 1 + max(map(level, graph[module]), default=-1)

    return {module: level(module) for module in graph}


_WIDTH, _ROW, _BOX, _TOP = 1000, 78, 34, 14
_FILLS = {"toolchat": "#dff0e4", "toolchat.service": "#e3ecf7", "app": "#fbeedb"}


def draw() -> str:
    """The picture: one row a level, and an arrow for each dependency that no other path implies."""
    boxes = _boxes()
    height = _TOP + _ROW * (max(levels().values()) + 1)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif">',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0L8 4L0 8z" fill="#5d7286"/></marker></defs>',
        *(_arrow(boxes[here], boxes[there]) for here, there in _direct()),
        *(_box(module, *boxes[module]) for module in boxes),
        "</svg>",
        "",
    ]
    return "\n".join(lines)


def _direct() -> list[tuple[str, str]]:
    """The dependencies without those that follow from others (the transitive reduction)."""
    graph = dependencies()

    @cache
    def reached(module: str) -> frozenset[str]:
        return frozenset(graph[module]).union(*map(reached, graph[module]))

    return sorted(
        (here, there)
        for here, targets in graph.items()
        for there in targets
        if not any(there in reached(other) for other in targets - {there})
    )


def _boxes() -> dict[str, tuple[int, int, int]]:
    """The left edge, the top and the width of each module's box."""
    rows: dict[int, list[str]] = {}
    for module, level in levels().items():
        rows.setdefault(level, []).append(module)
    boxes: dict[str, tuple[int, int, int]] = {}
    for level, modules in rows.items():
        step = _WIDTH // len(modules)
        width = min(step - 20, 220)
        for number, module in enumerate(modules):
            left = step * number + (step - width) // 2
            boxes[module] = (left, _TOP + _ROW * (max(rows) - level), width)
    return boxes


def _box(module: str, left: int, top: int, width: int) -> str:
    fill = _FILLS[layer_of(module)]
    name = module.removeprefix("toolchat.")
    return (
        f'<rect x="{left}" y="{top}" width="{width}" height="{_BOX}" rx="6" fill="{fill}" stroke="#4a6178"/>'
        f'<text x="{left + width // 2}" y="{top + 22}" font-size="15" text-anchor="middle">{name}</text>'
    )


def _arrow(here: tuple[int, int, int], there: tuple[int, int, int]) -> str:
    start, end, top, bottom = here[0] + here[2] // 2, there[0] + there[2] // 2, here[1] + _BOX, there[1] - 2
    return (
        f'<path d="M{start} {top} C{start} {top + 30} {end} {bottom - 30} {end} {bottom}" fill="none" '
        'stroke="#5d7286" marker-end="url(#head)"/>'
    )


if __name__ == "__main__":
    PICTURE.write_text(draw(), encoding="utf-8")
