"""The floors of the house: imports point down, and no tool knows another."""

import ast
import re
from pathlib import Path
from typing import TypeGuard

import pytest

from tests.architecture import FILES, FLOORS, PICTURE, ROOT, SIDEWAYS, arrows, drawn, floor, imports, module_of, room


@pytest.mark.parametrize("file", FILES, ids=module_of)
def test_a_file_imports_only_its_own_package_and_what_is_below_it(file: Path) -> None:
    here = module_of(file)
    for target in imports(file):
        assembly = floor(here) >= len(FLOORS) - 1
        meant = room(here) == room(target) or (room(here), room(target)) in SIDEWAYS
        assert assembly or meant or floor(target) < floor(here), f"{here} imports {target}"


def test_no_room_leads_back_to_itself() -> None:
    pairs = arrows()
    rooms = {name for pair in pairs for name in pair}
    while leaves := {name for name in rooms if not any(here == name for here, _ in pairs)}:
        rooms -= leaves
        pairs = {(here, there) for here, there in pairs if there not in leaves}
    assert pairs == set()


def test_the_picture_of_the_floors_is_current() -> None:
    assert PICTURE.read_text(encoding="utf-8") == drawn(), "run `make architecture`"


@pytest.mark.parametrize("folder", sorted(p.parent.name for p in (ROOT / "app" / "tools").glob("*/__init__.py")))
def test_no_tool_folder_imports_another(folder: str) -> None:
    # A tool may be deleted without any other noticing; what lies beside the folders is there for all of them.
    allowed = {"app.tools.error_rule", "app.tools.user_clock"}
    for file in (ROOT / "app" / "tools" / folder).rglob("*.py"):
        named = {name for name in imports(file) if name.startswith("app.tools.")}
        others = {name for name in named - allowed if name.split(".")[2] != folder}
        assert not others, f"{file.name} imports {others}"


def test_the_sandbox_knows_nothing_of_the_service() -> None:
    # The stand-in plays the outside world: it shares with what talks to it what is known of places, and no code.
    for file in (ROOT / "app" / "sandbox").rglob("*.py"):
        shared = {name for name in imports(file) if not name.startswith("app.sandbox")}
        assert all(name.startswith("app.gazetteer.") for name in shared), file.name


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


def test_every_file_that_the_page_names_is_there() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:[\w]+/)*[\w]+\.py|(?:[\w]+/)+)`", page))
    inside = [ROOT, ROOT / "app", *(each for each in (ROOT / "app").rglob("*") if each.is_dir())]
    assert len(named) > 40
    assert [each for each in sorted(named) if not any((folder / each).exists() for folder in inside)] == []


def test_the_names_of_tests_are_their_sentences_and_their_files_fit_in_the_head() -> None:
    files = sorted((ROOT / "tests").rglob("*.py"))
    functions = [
        each for file in files for each in ast.walk(ast.parse(file.read_text(encoding="utf-8"))) if _is_test(each)
    ]
    assert [each.name for each in functions if ast.get_docstring(each)] == []
    assert [str(file) for file in files if len(file.read_text(encoding="utf-8").splitlines()) > 300] == []


def _is_test(node: ast.AST) -> TypeGuard[ast.FunctionDef]:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
