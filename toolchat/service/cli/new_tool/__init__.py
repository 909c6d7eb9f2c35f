"""The command ``new-tool``: write a tool package and its test, ready to be changed."""

import keyword
import shlex
import sys
from collections.abc import Sequence
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

from toolchat.errors import ConfigurationError
from toolchat.service.cli import Program
from toolchat.service.cli.terminal import print_result
from toolchat.service.settings.base import read_settings
from toolchat.service.settings.env_file import load_env_file
from toolchat.service.tool_modules.definition_checks import shown_path
from toolchat.service.tool_modules.sources import ToolsPathSettings


def create_tool(program: Program, *, name: str, path: Path | None) -> int:
    """Write the package ``name`` and, beside it, ``test_name.py``; print the commands that test and run it."""
    _check_name(name, program.tools)
    load_env_file()
    loaded = read_settings(ToolsPathSettings).path or ("tools",)
    folder = path or Path(loaded[0])
    if path is None and "." in loaded[0] and not folder.is_dir():
        raise ConfigurationError(f"TOOLS_PATH: {loaded[0]} is a package; name the folder to write to with --path")
    written = {folder / name / "__init__.py": "tool.txt", folder / f"test_{name}.py": "test.txt"}
    for file in (folder / name, folder / f"{name}.py", *written):
        if file.exists():
            raise ConfigurationError(f"{file}: exists already; nothing was written")
    for file, template in written.items():
        text = (files(__name__) / template).read_text(encoding="utf-8")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text.format(name=name, title=name.replace("_", " ").capitalize()), encoding="utf-8")
        print_result(f"wrote {file}")
    print_result("\n  ".join(["\nnext:", *_next_commands(program, name, folder, str(folder) in loaded)]))
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
    test = f"{python} -m pytest {shlex.quote(str(folder / f'test_{name}.py'))}"
    return [test, f"{started} tools run {name} city=Paris", f"{started} serve"]
