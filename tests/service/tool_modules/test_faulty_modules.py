"""Modules that are written wrong in every way: the start ends with one line that has the file and the reason."""

from pathlib import Path

import pytest

from tests.command_line import run
from toolchat.errors import ConfigurationError
from toolchat.service.main import create_app

HEAD = """
from abc import ABC, abstractmethod
from contextlib import asynccontextmanager
from typing import ClassVar
from toolchat import Advisor, ToolCallingManager, ToolModule, ToolSettings, tool
async def roll() -> int:
    "Roll."
    return 4
class Tools:
    def __init__(self, key: bytes) -> None: ...
    @tool
    def read(self) -> str:
        "Read."
        return ""
class Watch(Advisor):
    def __init__(self, key: bytes) -> None: ...
    async def advise(self, request, chain, emit): ...
def key() -> bytes:
    raise OSError("SECRET")
"""
SETTINGS = "class S(ToolSettings):\n    required: ClassVar = {}\nmodule = ToolModule(settings={})"
SOURCE = "{}async def source(container):\n    {}\nmodule = ToolModule(tool_source=source)"
MANAGED = "@asynccontextmanager\n"
ABSTRACT = """
class T(ABC):
    @tool
    def t(self): "T."
    @abstractmethod
    def u(self): ...
module = ToolModule(methods=(T,))
"""
PROPERTY = "class T:\n    @tool\n    @property\n    def t(self): ...\nmodule = ToolModule(methods=(T,))"
REPLACES = "def manager() -> ToolCallingManager:\n    {}\nmodule = ToolModule(replaces=(manager,))"
NO_SOURCE = "tool_source must be an asynccontextmanager that yields a list of tools"
NO_TOOL = "cannot be imported: ToolDefinitionError: @tool marks functions, no {}; a name is written name=... (line {})"
TAKEN = "the path /{0}/chat begins with /{0}, which is the service's; rename the module, or set its path"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CHAT_PROVIDER", "offline")
    (tmp_path / "own").mkdir()
    return tmp_path / "own"


def write(folder: Path, source: str, name: str = "dice") -> None:
    (folder / f"{name}.py").write_text(HEAD + source, encoding="utf-8")


async def fault_of(folder: Path) -> str:
    """The fault with which the service of a folder does not start."""
    with pytest.raises(ConfigurationError) as caught:  # noqa: PT012 - either may fail
        app = create_app(tools=(str(folder),))
        async with app.router.lifespan_context(app):
            pass
    return str(caught.value)


@pytest.mark.parametrize(
    ("source", "told"),
    [
        (SETTINGS.format("('nope',)", "S"), "required: class S has no field nope"),
        (SETTINGS.format("'enabled'", "S"), "required must be a tuple: write (one,) for a single one"),
        (SETTINGS.format("()", "S()"), "settings must be a class derived from ToolSettings, not an object of S"),
        ("module = ToolModule(settings=Tools)", "settings must be a class derived from ToolSettings, not class Tools"),
        ("module = ToolModule(examples=['x'])", "examples must be a dict of questions by their labels"),
        (SOURCE.format(MANAGED, "raise OSError('SECRET')\n    yield"), "tool_source: OSError (line 22)"),
        (SOURCE.format(MANAGED, "yield"), NO_SOURCE),
        (SOURCE.format("", "yield []"), NO_SOURCE),
        (SOURCE.format("", "return []"), NO_SOURCE),
        ("module = ToolModule(methods=(Tools,), provides=(key,))", "cannot be created: OSError (line 19)"),
        ("module = ToolModule(advisors=(Watch,), provides=(key,))", "cannot be created: OSError (line 19)"),
        (ABSTRACT, "class T has no method u"),
        ("@tool('f')\ndef f(): ...", NO_TOOL.format("str", 20)),
        (PROPERTY, NO_TOOL.format("property", 21)),
        ("module = ToolModule(advisors=(Tools,))", "advisors: Tools is no class derived from Advisor"),
        ("class W(Advisor): ...\nmodule = ToolModule(advisors=(W,))", "advisors: class W has no method advise"),
        ("module = ToolModule(functions=('roll',))", "functions: an object of str is no tool"),
        ("module = ToolModule(methods=(roll,))", "an object of function has no method that @tool marks"),
        (REPLACES.format("raise OSError('SECRET')"), "replaces: OSError (line 21)"),
        (REPLACES.format("return None"), "replaces: None came in place of "),
    ],
)
async def test_a_module_that_is_written_wrong_ends_the_start_with_its_file_and_the_reason(
    source: str, told: str, folder: Path
) -> None:
    write(folder, source)
    fault = await fault_of(folder)
    assert fault.startswith(f"own/dice.py: {told}")
    assert len(fault.splitlines()) == 1


@pytest.mark.parametrize("name", ["chat", "docs", "health", "v1"])
async def test_a_module_whose_path_is_the_services_is_named(name: str, folder: Path) -> None:
    write(folder, "module = ToolModule(functions=(roll,), default_query='Roll')", name)
    assert await fault_of(folder) == f"own/{name}.py: {TAKEN.format(name)}"


@pytest.mark.parametrize("command", ["tools", "serve"])
def test_the_text_of_an_exception_is_printed_by_no_command(command: str, folder: Path) -> None:
    write(folder, "module = ToolModule(methods=(Tools,), provides=(key,))")
    done = run(command, cwd=folder.parent, TOOLS_PATH="own", SERVER_PORT="0")
    assert done.returncode != 0
    assert "own/dice.py: cannot be created: OSError (line 19)" in done.stderr
    assert "SECRET" not in done.stderr
    assert "Traceback" not in done.stderr
