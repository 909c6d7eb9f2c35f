"""The floors of the house: imports point down, and no tool knows another."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FILES = sorted((ROOT / "app").rglob("*.py"))
GROUND = {
    "lazy",
    "pooled_httpx",
    "messages",
    "errors",
    "settings",
    "container",
    "http",
    "logs",
    "version",
    "state_store",
}
GROUND |= {"folding", "languages", "places"}
FLOORS = {"sandbox": 1, "tool_calling": 1, "chat_models": 2, "chat": 3, "api": 4, "tools": 5}


def floor(module: str) -> int:
    """The floor of a dotted module below ``app``."""
    part = module.split(".")[1] if "." in module else ""
    return 0 if part in GROUND else FLOORS.get(part, 6)


def imports(file: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            found.add(node.module or "")
        elif isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
    return {name for name in found if name == "app" or name.startswith("app.")}


def module_of(file: Path) -> str:
    return ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@pytest.mark.parametrize("file", FILES, ids=lambda file: module_of(file))
def test_a_file_imports_only_its_own_package_and_what_is_below_it(file: Path) -> None:
    """An import within one package, or from a lower floor, is allowed; the ground floor shares errors and folding."""
    here = module_of(file)
    for target in imports(file):
        same_package = target.split(".")[:2] == here.split(".")[:2] and floor(here) != 6
        ground = floor(here) == 0 and target in ("app.errors", "app.folding", "app.pooled_httpx")
        assert ground or same_package or floor(target) < floor(here) or floor(here) == 6, f"{here} imports {target}"


@pytest.mark.parametrize("folder", sorted(p.parent.name for p in (ROOT / "app" / "tools").glob("*/__init__.py")))
def test_no_tool_folder_imports_another(folder: str) -> None:
    """A tool may be deleted without any other noticing."""
    allowed = ("app.tools.module", f"app.tools.{folder}")
    for file in (ROOT / "app" / "tools" / folder).rglob("*.py"):
        others = {name for name in imports(file) if name.startswith("app.tools.") and not name.startswith(allowed)}
        assert not others, f"{file.name} imports {others}"


def test_the_sandbox_knows_nothing_of_the_service() -> None:
    """The stand-in plays the outside world: it shares with what talks to it what is known of places, and no code."""
    for file in (ROOT / "app" / "sandbox").rglob("*.py"):
        shared = {name for name in imports(file) if not name.startswith("app.sandbox")}
        assert all(name.startswith("app.places.") for name in shared), file.name


def exported(file: Path) -> set[str]:
    assigned = [node for node in ast.parse(file.read_text()).body if isinstance(node, ast.Assign)]
    lists = [each.value for each in assigned if ast.unparse(each.targets[0]) == "__all__"]
    return {name for each in lists for name in ast.literal_eval(each)}


def test_every_name_that_another_file_imports_is_exported() -> None:
    modules = {module_of(file): exported(file) for file in FILES}
    hidden = [
        f"{module_of(file)} imports {node.module}.{name.name}"
        for file in FILES
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module in modules
        for name in node.names
        if f"{node.module}.{name.name}" not in modules and name.name not in modules[node.module]
    ]
    assert hidden == []
