"""The command ``new-tool``: write a tool package and its test, ready to be changed."""

import keyword
import shlex
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from toolchat.errors import ConfigurationError
from toolchat.service.cli.program import Program
from toolchat.service.cli.terminal import print_result
from toolchat.service.settings.base import read_settings
from toolchat.service.settings.env_file import load_env_file
from toolchat.service.tool_modules.definition_checks import shown_path
from toolchat.service.tool_modules.sources import ToolsPathSettings

_PACKAGE = '''\
"""The tool {name}."""

from typing import Annotated

from toolchat import ToolModule, tool


@tool(read_only=True)
async def {name}(city: Annotated[str, "City name in English"]) -> str:
    """Describe here what the tool returns: the model decides by this text when to call it."""
    return f"Nothing is known about {{city}} yet."


module = ToolModule(functions=({name},), default_query="{title} in Paris")
'''
_TEST = '''\
"""Tests of the tool {name}."""

import asyncio

from {name} import {name}
from toolchat import ChatClient
from toolchat.testing import ScriptedModel, call


def test_the_result_names_the_city() -> None:
    """The tool returns a text about the city that it is asked about."""
    assert "Paris" in asyncio.run({name}("Paris"))


def test_a_model_can_call_the_tool() -> None:
    """The arguments that a model writes are accepted, and its answer comes back."""
    model = ScriptedModel([call("{name}", city="Paris"), "Nothing yet."])
    prompt = ChatClient.create(model, tools=[{name}]).prompt("What about Paris?")
    response = asyncio.run(prompt.call().response())
    assert [each.outcome for each in response.executions] == ["ok"]
    assert response.message.text == "Nothing yet."
'''


def create_tool(program: Program, *, name: str, path: Path | None) -> int:
    """Write the package ``name`` and, beside it, ``test_name.py``; print the commands that test and run it.

    Args:
        program: the application, with its tools.
        name: name of the package and of its tool.
        path: folder to write to; default: the first of ``TOOLS_PATH``, else ``tools``.

    Raises:
        ConfigurationError: the name cannot be used, or a file exists already; then nothing is written.
    """
    _check_name(name, program.tools)
    load_env_file()
    loaded = read_settings(ToolsPathSettings).path or ("tools",)
    folder = path or Path(loaded[0])
    if path is None and "." in loaded[0] and not folder.is_dir():
        raise ConfigurationError(f"TOOLS_PATH: {loaded[0]} is a package; name the folder to write to with --path")
    files = {folder / name / "__init__.py": _PACKAGE, folder / f"test_{name}.py": _TEST}
    for file in (folder / name, folder / f"{name}.py", *files):
        if file.exists():
            raise ConfigurationError(f"{file}: exists already; nothing was written")
    for file, template in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(template.format(name=name, title=name.replace("_", " ").capitalize()), encoding="utf-8")
        print_result(f"wrote {file}")
    print_result(
        "\n".join(
            ["", "next:", *(f"  {line}" for line in _next_commands(program, name, folder, str(folder) in loaded))]
        )
    )
    return 0


def _check_name(name: str, packages: Sequence[str]) -> None:
    if not (name.isidentifier() and name.isascii() and name == name.lower()) or keyword.iskeyword(name):
        raise ConfigurationError(f"{name[:64]}: must be a Python name in lower case, such as air_quality")
    # The test imports the package by its bare name, so it must not hide an installed one.
    is_known = any(map(find_spec, (name, *(f"{each}.{name}" for each in packages))))
    if is_known or name in ("module", "tool", "conftest") or name.startswith(("_", "test")):
        raise ConfigurationError(f"{name}: is a name that Python or the service uses already; choose another")


def _next_commands(program: Program, name: str, folder: Path, is_loaded: bool) -> list[str]:
    python = shlex.quote(shown_path(Path(sys.executable)))
    script = Path(sys.executable).with_name(program.command)
    command = shlex.quote(shown_path(script)) if script.exists() else program.command.replace("python", python)
    started = f"{'' if is_loaded else f'TOOLS_PATH={shlex.quote(str(folder))} '}{command}"
    return [
        *([] if find_spec("pytest") else [f"{python} -m pip install pytest"]),
        f"{python} -m pytest {shlex.quote(str(folder / f'test_{name}.py'))}",
        f"{started} tools run {name} city=Paris",
        f"{started} serve",
    ]
