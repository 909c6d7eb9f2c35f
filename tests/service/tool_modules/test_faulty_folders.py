"""What a user is told at start about a tool folder that is not right."""

import logging
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.command_line import run, with_tools
from toolchat.errors import ConfigurationError
from toolchat.service.composition.wiring import module_container
from toolchat.service.tool_modules.discovery import ConfiguredModule, discover
from toolchat.service.tool_modules.registration import open_registry
from toolchat.tool_calling.results import ToolCallResultConverter, convert_result

HEAD = (
    "from typing import Annotated, Any\nfrom toolchat import ToolModule\n"
    "from toolchat.tool_calling.function_callback import tool\nfrom toolchat.tool_calling.context import ToolContext\n"
)
DICE = (
    'async def castDice(sides: Annotated[int, "Sides"] = 6) -> int:\n    "Roll."\n    return sides\n\n'
    "module = ToolModule(functions=(castDice,))\n"
)
METHOD = (
    'class Dice:\n    @tool(name="{name}")\n    async def roll(self, sides: Annotated[int, "Sides"]) -> int:\n'
    '        "Roll."\n        return sides\n\nmodule = ToolModule(methods=(Dice,))\n'
)


def write(root: Path, folders: Mapping[str, str]) -> None:
    for folder, source in folders.items():
        (root / folder).mkdir(parents=True)
        (root / folder / "__init__.py").write_text(source, encoding="utf-8")


def faults(package: str, folders: Mapping[str, str]) -> list[str]:
    """The lines with which the folders stop the start; each names its file from the package on."""
    write(Path(package), folders)
    try:
        for module in discover([package]):
            ConfiguredModule.read(module)
    except ConfigurationError as error:
        return str(error).replace(f"{package}/", "").splitlines()
    return []


@pytest.mark.parametrize(
    ("source", "line"),
    [
        (
            "def castDice(sides): ...\nmodule = ToolModule(functions=(castDice,))",
            "tool castDice: parameter sides has no type",
        ),
        (
            "def castDice(*sides: int): ...\nmodule = ToolModule(functions=(castDice,))",
            "tool castDice: parameter sides must be an ordinary or keyword parameter",
        ),
        (
            "class Odd: ...\ndef castDice(n: int, odd: Odd): ...\nmodule = ToolModule(functions=(castDice,))",
            "tool castDice: parameter odd has a type that JSON cannot carry: Unable to generate",
        ),
        (
            "def castDice(n: int, sides: 'Side'): ...\nmodule = ToolModule(functions=(castDice,))",
            "tool castDice: parameter sides has a type that cannot be read: name 'Side' is not defined",
        ),
        (
            "class Dice:\n    @tool()\n    def roll(self, sides): ...\nmodule = ToolModule(methods=(Dice,))",
            "tool roll: parameter sides has no type",
        ),
        (
            "def roll(n: int, all: list[ToolContext]): ...\nmodule = ToolModule(functions=(roll,))",
            "tool roll: parameter all has a type that JSON cannot carry: a ToolContext comes from the caller alone",
        ),
        (
            "def roll(one: ToolContext, two: ToolContext | None): ...\nmodule = ToolModule(functions=(roll,))",
            "tool roll: parameter two is a second ToolContext",
        ),
        (
            "async def roll(n: int):\n  yield n\nmodule = ToolModule(functions=(roll,))",
            "tool roll: a generator cannot be a tool",
        ),
        (
            "@tool(retries=2, requires_approval=True)\ndef roll(n: int): ...\nmodule = ToolModule(functions=(roll,))",
            "tool roll: retries is not for a tool that requires approval",
        ),
        ("class Dice: ...\nmodule = ToolModule(functions=(Dice,))", "tool Dice: the class has no method __call__"),
        ("class Dice: ...\nmodule = ToolModule(methods=(Dice,))", "class Dice has no method that @tool marks"),
        ("@tool(name=' ')\ndef f(): ...\nmodule = ToolModule(functions=(f,))", "tool  : the name is blank"),
        ("@tool(description='')\ndef f(): 1\nmodule = ToolModule(functions=(f,))", "tool f: the description is blank"),
        ("def f(): 1\nmodule = ToolModule(functions=(f))", "functions must be a tuple: write (one,) for a single one"),
        ("", "there is no 'module = ToolModule(...)'; begin the name of shared code with _"),
        ("module = 1", "there is no 'module = ToolModule(...)'; begin the name of shared code with _"),
    ],
)  # fmt: skip
def test_a_definition_that_cannot_work_stops_the_start_with_file_tool_and_parameter(
    source: str, line: str, package: str
) -> None:
    (told,) = faults(package, {"dice": HEAD + source})
    assert told.startswith(f"dice/__init__.py: {line}")


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("\n\ndef f(:\n", "SyntaxError: invalid syntax (line 3)"),
        ("\nfrom typing import Nothing", "ImportError: cannot import name 'Nothing' from 'typing'"),
        ("\n1 / 0", "ZeroDivisionError: division by zero (line 2)"),
        ("raise RuntimeError('first\\nsecond')", "RuntimeError: first (line 1)"),
        ("from toolchat import ToolModule\nmodule = ToolModule(no=1)", "TypeError: ToolModule.__init__() got"),
    ],
)
def test_a_failed_import_is_reported_in_one_line(source: str, told: str, package: str) -> None:
    (line,) = faults(package, {"dice": source})
    assert line.startswith(f"dice/__init__.py: cannot be imported: {told}")


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (DICE, DICE),
        (DICE, METHOD.format(name="castDice")),
        (METHOD.format(name="castDice"), DICE),
    ],
    ids=["two functions", "a method like a function", "a function like a method"],
)
def test_two_tools_of_one_name_are_reported_with_both_owners(one: str, two: str, package: str) -> None:
    (line,) = faults(package, {"one": HEAD + one, "two": HEAD + two})
    assert line.count("/__init__.py") == 2
    assert "one/__init__.py" in line
    assert "two/__init__.py" in line
    assert line.endswith("already has a tool of this name")


def test_a_duplicate_name_in_one_module_is_reported_too(package: str) -> None:
    functions = DICE.replace("(castDice,)", "(castDice, tool(name='castDice')(lambda: 1))")
    methods = METHOD.format(name="roll").replace("\n\nmodule", "\n    @tool(name='roll')\n    def b(self): ...\nmodule")
    lines = faults(package, {"one": HEAD + functions, "two": HEAD + methods})
    assert len(lines) == 2


def test_a_function_and_a_method_of_one_folder_may_share_a_name(package: str) -> None:
    both = DICE.replace("module =", "FUNCTION =") + METHOD.format(name="castDice")
    both = both.replace("methods=(Dice,)", "functions=(castDice,), methods=(Dice,)")
    assert faults(package, {"one": HEAD + both, "two": HEAD + METHOD.format(name="other")}) == []


@pytest.mark.parametrize(
    ("source", "warnings"),
    [
        (DICE, []),
        (DICE.replace(', "Sides"', ", 1"), ["tool castDice: parameter sides has no description"]),
        (DICE.replace('"Roll."', "..."), ["tool castDice: has no description but its name"]),
        (DICE.replace("castDice", "a" * 65), [f"tool {'a' * 65}: is offered as {'a' * 55}_"]),
        (METHOD.format(name="a.b"), ["tool a.b: is offered as a_b_"]),
        (
            "def f(a: int, b: str): ...\nmodule = ToolModule(functions=(f,))",
            [
                "tool f: has no description but its name",
                "tool f: parameter a has no description",
                "tool f: parameter b has no description",
            ],
        ),
    ],
)
async def test_a_definition_warning_is_logged(
    source: str, warnings: list[str], package: str, caplog: pytest.LogCaptureFixture
) -> None:
    write(Path(package), {"dice": HEAD + source})
    configured = [ConfiguredModule.read(module) for module in discover([package])]
    container = module_container(configured[0], {ToolCallResultConverter: convert_result})
    with caplog.at_level(logging.WARNING):
        async with open_registry({"dice": container}, configured):
            pass
    await container.close()
    told = [(record.name, record.levelname, record.getMessage()) for record in caplog.records]
    assert len(told) == len(warnings)
    for (name, level, message), warning in zip(told, warnings, strict=True):
        assert (name, level) == ("toolchat.tools", "WARNING")
        assert message.startswith(f"{package}/dice/__init__.py: {warning}")


def test_all_faults_are_reported_at_once_with_exit_code_2(tmp_path: Path) -> None:
    folders = {"broken": "\n\ndef f(:", "empty": "", "one": HEAD + DICE, "two": HEAD + DICE}
    variables = with_tools(tmp_path, folders)
    done = run("tools", cwd=tmp_path, **variables)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [
        "toolchat: tools/broken/__init__.py: cannot be imported: SyntaxError: invalid syntax (line 3)",
        "toolchat: tools/empty/__init__.py: there is no 'module = ToolModule(...)'; "
        "begin the name of shared code with _",
        "toolchat: tools/two/__init__.py: tool castDice: tools/one/__init__.py already has a tool of this name",
    ]
