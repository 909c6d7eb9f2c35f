"""Two packages, few modules, imports that point downwards only, and no tool that knows another."""

import ast
import re
from pathlib import Path

import pytest

from tests.architecture import (
    FILES,
    PACKAGES,
    PICTURE,
    ROOT,
    dependencies,
    draw,
    imported,
    imports,
    levels,
    name_of,
    tree_of,
)


def test_each_package_has_the_modules_that_are_named_and_no_others() -> None:
    roots = {package: {each.stem for each in (ROOT / package).iterdir() if _is_module(each)} for package in PACKAGES}
    assert roots == {package: set(names) for package, names in PACKAGES.items()}


def test_the_modules_are_few_and_on_few_levels_without_a_circle() -> None:
    of_each = levels()  # a circle of modules would end in a RecursionError
    assert (len(of_each) <= 26, max(of_each.values()) + 1 <= 10) == (True, True), of_each


def test_the_engine_imports_nothing_of_the_service() -> None:
    upward = [
        (here, name) for here, targets in dependencies().items() for name in targets if here.startswith("toolchat.")
    ]
    assert [(here, name) for here, name in upward if name.startswith("app.")] == []


def test_no_file_imports_itself_in_a_circle() -> None:
    graph = {name_of(file): {each for each in at_the_head(file) if each != name_of(file)} for file in FILES}
    while leaves := {name for name, targets in graph.items() if not targets & graph.keys()}:
        graph = {name: targets for name, targets in graph.items() if name not in leaves}
    assert graph == {}


def test_the_picture_is_current() -> None:
    assert PICTURE.read_text(encoding="utf-8") == draw(), "run `make architecture`"


def at_the_head(file: Path) -> set[str]:
    """The names of the files that are imported when a file is; what a function imports comes later."""
    heads = [node for node in tree_of(file).body if isinstance(node, ast.ImportFrom)]
    return {each for node in heads for each in imported(node)}


def _is_module(path: Path) -> bool:
    return (path / "__init__.py").exists() or (path.suffix == ".py" and path.name != "__init__.py")


@pytest.mark.parametrize("folder", sorted(p.parent.name for p in (ROOT / "app" / "tools").glob("*/__init__.py")))
def test_no_tool_folder_imports_another(folder: str) -> None:
    # A tool may be deleted without any other noticing; what lies beside the folders is there for all of them.
    allowed = {
        "toolchat.service.tool_modules.error_rule",
        "toolchat.service.tool_modules.json_reply",
        "app.tools.user_clock",
    }
    for file in (ROOT / "app" / "tools" / folder).rglob("*.py"):
        named = {name for name in imports(file) if name.startswith("app.tools.")}
        others = {name for name in named - allowed if name.split(".")[2] != folder}
        assert not others, f"{file.name} imports {others}"


def test_the_sandbox_knows_nothing_of_the_service() -> None:
    # The sandbox plays the upstreams: it shares the gazetteer with the service, and no code.
    for file in (ROOT / "app" / "sandbox").rglob("*.py"):
        shared = {name for name in imports(file) if not name.startswith("app.sandbox")}
        assert all(name.startswith("toolchat.service.gazetteer.") for name in shared), file.name


def test_no_file_imports_a_private_name_of_another() -> None:
    private = [
        f"{name_of(file)} imports {node.module}.{each.name}"
        for file in FILES
        for node in ast.walk(tree_of(file))
        if isinstance(node, ast.ImportFrom) and str(node.module).partition(".")[0] in PACKAGES
        for each in node.names
        if each.name.startswith("_") and each.name != "__version__"
    ]
    assert private == []


def test_no_file_of_the_engine_imports_the_exports() -> None:
    # ``toolchat`` imports every file of the engine at its first use, so that a file would import itself.
    engine = [file for file in FILES if file.is_relative_to(ROOT / "toolchat") and "service" not in file.parts]
    assert [name_of(file) for file in engine if {"toolchat", "toolchat.exports"} & imports(file)] == ["toolchat"]


def test_every_file_that_the_page_names_is_there() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:[\w]+/)*[\w]+\.py|(?:[\w]+/)+)`", page))
    inside = [ROOT, *(ROOT / package for package in PACKAGES)]
    assert len(named) > 40
    assert [each for each in sorted(named) if not any((folder / each).exists() for folder in inside)] == []


def test_the_names_of_tests_are_their_sentences_and_their_files_fit_in_the_head() -> None:
    files = {file: file.read_text(encoding="utf-8") for file in (ROOT / "tests").rglob("*.py")}
    described = re.compile(r'^ *(?:async )?def (test_\w+)\((?:(?!def )[^"])*?\) -> None:\n +"""', flags=re.MULTILINE)
    assert [name for text in files.values() for name in described.findall(text)] == []
    assert [str(file) for file, text in files.items() if text.count("\n") > 300] == []
