"""Three layers, imports that point downwards only, and no tool that knows another."""

import ast
import re
from pathlib import Path

import pytest

from tests.architecture import FILES, ROOT, imported, imports, layer_of, name_of, tree_of

FRAMEWORKS = {"fastapi", "starlette", "uvicorn", "dishka", "pydantic_settings"}
PUBLIC = {"toolchat", "toolchat.service", "toolchat.service.cli"}
"""What a user's application and tools import."""
SHARED = {"toolchat.tool_calling.text_normalization"}
"""How names are compared: the tables of places and the offline model fold them alike."""


def named_in(file: Path) -> set[str]:
    """Every module that a file imports something from, at its head or within a function."""
    nodes = list(ast.walk(tree_of(file)))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return names | {str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)}


def is_below(name: str, packages: set[str]) -> bool:
    return any(f"{name}.".startswith(f"{each}.") for each in packages)


@pytest.mark.parametrize(
    ("layer", "refused"), [("toolchat", FRAMEWORKS | {"toolchat.service", "app"}), ("toolchat.service", {"app"})]
)
def test_a_layer_imports_nothing_of_the_layers_above_it(layer: str, refused: set[str]) -> None:
    files = [file for file in FILES if layer_of(name_of(file)) == layer]
    assert files
    assert [(str(file), name) for file in files for name in named_in(file) if is_below(name, refused)] == []


def test_the_example_application_imports_what_any_user_may() -> None:
    used = [(file, name) for file in FILES for name in named_in(file) if layer_of(name_of(file)) == "app"]
    own = [(file, name) for file, name in used if is_below(name, {"toolchat"}) and name not in PUBLIC]
    assert [(str(file), name) for file, name in own if not is_below(name, SHARED)] == []


def test_no_file_imports_itself_in_a_circle() -> None:
    graph = {name_of(file): {each for each in at_the_head(file) if each != name_of(file)} for file in FILES}
    while leaves := {name for name, targets in graph.items() if not targets & graph.keys()}:
        graph = {name: targets for name, targets in graph.items() if name not in leaves}
    assert graph == {}


def at_the_head(file: Path) -> set[str]:
    """The names of the files that are imported when a file is; what a function imports comes later."""
    heads = [node for node in tree_of(file).body if isinstance(node, ast.ImportFrom)]
    return {each for node in heads for each in imported(node)}


@pytest.mark.parametrize("folder", sorted(p.parent.name for p in (ROOT / "app" / "tools").glob("*/__init__.py")))
def test_no_tool_folder_imports_another(folder: str) -> None:
    # A tool may be deleted without any other noticing.
    for file in (ROOT / "app" / "tools" / folder).rglob("*.py"):
        others = {name for name in imports(file) if name.startswith("app.tools.") and name.split(".")[2] != folder}
        assert not others, f"{file.name} imports {others}"


def test_no_file_imports_a_private_name_of_another() -> None:
    nodes = [(file, node) for file in FILES for node in ast.walk(tree_of(file)) if isinstance(node, ast.ImportFrom)]
    names = [(str(file), each.name) for file, node in nodes for each in node.names]
    assert [(file, name) for file, name in names if name.startswith("_") and name != "__version__"] == []


def test_no_file_of_the_engine_imports_the_exports() -> None:
    # ``toolchat`` imports every file of the engine at its first use, so that a file would import itself.
    engine = [file for file in FILES if layer_of(name_of(file)) == "toolchat"]
    assert [name_of(file) for file in engine if {"toolchat", "toolchat.exports"} & imports(file)] == ["toolchat"]


def test_every_file_that_the_page_names_is_there() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:[\w]+/)*[\w]+\.py|(?:[\w]+/)+)`", page))
    inside = [ROOT, ROOT / "toolchat", ROOT / "toolchat" / "service", ROOT / "app"]
    assert len(named) > 40
    assert [each for each in sorted(named) if not any((folder / each).exists() for folder in inside)] == []


def test_the_names_of_tests_are_their_sentences() -> None:
    found = [file for file in (ROOT / "tests").rglob("test_*.py") if not {".venv", "faults"} & set(file.parts)]
    files = {file: file.read_text(encoding="utf-8") for file in found}
    described = re.compile(r'^ *(?:async )?def (test_\w+)\((?:(?!def )[^"])*?\) -> None:\n +"""', flags=re.MULTILINE)
    assert [name for text in files.values() for name in described.findall(text)] == []
