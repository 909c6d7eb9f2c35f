"""The floors of the house, read from the code. Run as a module, it draws ``docs/architecture.svg`` anew."""

import ast
from collections.abc import Iterator
from pathlib import Path
from xml.sax.saxutils import escape

__all__ = ["FILES", "FLOORS", "PICTURE", "ROOT", "SIDEWAYS", "arrows", "drawn", "floor", "imports", "module_of", "room"]

ROOT = Path(__file__).parent.parent
FILES = sorted((ROOT / "app").rglob("*.py"))
PICTURE = ROOT / "docs" / "architecture.svg"

FLOORS = [
    (
        "words, errors, what is written down, who asks",
        [
            "messages",
            "errors",
            "logs",
            "callers",
            "observation",
            "folding",
            "spelling",
            "lazy",
            "late_models",
            "lean_imports",
            "immutable",
            "version",
        ],
    ),
    (
        "places, languages, stand-ins, the way out, wiring, configuration",
        [
            "places",
            "languages",
            "sandbox",
            "http",
            "outbound",
            "breakers",
            "container",
            "settings",
            "env_file",
            "time_limits",
            "tracing",
        ],
    ),
    ("the mechanism: tools and their calls; shared state", ["tool_calling", "state_store"]),
    ("chat models: providers, and the stand-in without a key", ["chat_models", "offline"]),
    ("what happens around one question, and who may ask it", ["chat", "access"]),
    ("HTTP that belongs to no single tool", ["api"]),
    ("one folder per tool, or for each other server", ["tools", "mcp_servers"]),
    (
        "the assembly, the server, the command line",
        [
            "main",
            "assembly",
            "asgi",
            "server",
            "workers",
            "commands",
            "__main__",
        ],
    ),
]
"""From the ground up: what lives there, and its rooms: a package or a file below ``app``."""

SIDEWAYS = {
    ("sandbox", "places"),
    ("http", "outbound"),
    ("http", "breakers"),
    ("time_limits", "settings"),
    ("offline", "chat_models"),
    ("tracing", "settings"),
    ("env_file", "settings"),
    ("logs", "observation"),
    ("observation", "errors"),
    ("observation", "messages"),
    ("messages", "immutable"),
    ("callers", "immutable"),
    ("lean_imports", "late_models"),
    ("mcp_servers", "tools"),
}
"""Imports within one floor that are meant; everything else goes down."""

_BY_ROOM = {name: number for number, (_, names) in enumerate(FLOORS) for name in names}


def module_of(file: Path) -> str:
    """The dotted name of a file."""
    return ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def room(module: str) -> str:
    """The room of a dotted module; none for the package ``app`` itself, which only names what others hold."""
    return module.split(".")[1] if "." in module else ""


def floor(module: str) -> int:
    """The floor of a dotted module, from 0.

    Raises:
        KeyError: a room that no floor has.
    """
    return _BY_ROOM[room(module)] if room(module) else len(FLOORS)


def imports(file: Path) -> set[str]:
    """The modules of the application that a file imports."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            found.add(node.module or "")
        elif isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
    return {name for name in found if name == "app" or name.startswith("app.")}


def arrows() -> set[tuple[str, str]]:
    """Which room imports which other one."""
    pairs = {(room(module_of(file)), room(target)) for file in FILES for target in imports(file)}
    return {(here, there) for here, there in pairs if here and there and here != there}


_WIDTH, _LEFT, _HEIGHT, _STEP = 1180, 20, 84, 112


def drawn() -> str:
    """The picture: floors from the top down, rooms on them, and who imports whom."""
    places = dict(_places())
    lines = [_arrow(places[here], places[there]) for here, there in sorted(arrows())]
    height = _STEP * len(FLOORS) + 10
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif">',
            '<rect width="100%" height="100%" fill="#ffffff"/>',
            *(_band(number) for number in range(len(FLOORS))),
            *lines,
            *(_box(name, *place) for name, place in places.items()),
            "</svg>",
            "",
        ]
    )


def _top(number: int) -> int:
    return 10 + _STEP * (len(FLOORS) - 1 - number)


def _places() -> Iterator[tuple[str, tuple[int, int, int]]]:
    """The left edge, the top and the width of each room."""
    for number, (_, names) in enumerate(FLOORS):
        width = min(210, (_WIDTH - 2 * _LEFT) // len(names) - 14)
        row = len(names) * (width + 14) - 14
        for place, name in enumerate(names):
            yield name, ((_WIDTH - row) // 2 + place * (width + 14), _top(number) + 34, width)


def _band(number: int) -> str:
    top = _top(number)
    return (
        f'<rect x="4" y="{top}" width="{_WIDTH - 8}" height="{_HEIGHT}" rx="8" fill="#f1f4f8"/>'
        f'<text x="{_LEFT}" y="{top + 21}" font-size="15" fill="#51606f">{number}  {escape(FLOORS[number][0])}</text>'
    )


def _box(name: str, left: int, top: int, width: int) -> str:
    return (
        f'<rect x="{left}" y="{top}" width="{width}" height="36" rx="6" fill="#ffffff" stroke="#2f6f9f"/>'
        f'<text x="{left + width // 2}" y="{top + 23}" font-size="15" text-anchor="middle" fill="#12283a">{name}</text>'
    )


def _arrow(here: tuple[int, int, int], there: tuple[int, int, int]) -> str:
    start, end = here[0] + here[2] // 2, there[0] + there[2] // 2
    bend = (here[1] + 36 + there[1]) // 2
    return (
        f'<path d="M{start} {here[1] + 36} C{start} {bend} {end} {bend} {end} {there[1]}" fill="none" '
        'stroke="#2f6f9f" stroke-opacity="0.35"/>'
    )


if __name__ == "__main__":
    PICTURE.write_text(drawn(), encoding="utf-8")
