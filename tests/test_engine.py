"""The engine stands alone: what it imports, and its wheel in an environment without the service."""

import ast
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from importlib.metadata import version
from pathlib import Path
from shutil import copy, copytree

import pytest

from tests.command_line import ROOT, environment
from tests.waiting import PATIENCE

ENGINE = sorted((ROOT / "toolchat").rglob("*.py"))
FOREIGN = {"app", "fastapi", "starlette", "uvicorn", "dishka", "pydantic_settings"}


def _module(file: Path) -> str:
    return ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def _imported(file: Path) -> set[str]:
    """The top-level packages that a file imports, at whatever place in it."""
    nodes = list(ast.walk(ast.parse(file.read_text(encoding="utf-8"))))
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
    return {name.partition(".")[0] for name in names}


@pytest.mark.parametrize("file", ENGINE, ids=_module)
def test_no_module_of_the_engine_imports_the_service_or_a_web_framework(file: Path) -> None:
    assert not _imported(file) & FOREIGN


def test_importing_the_whole_engine_loads_neither_the_service_nor_a_web_framework() -> None:
    program = f"""
import importlib, sys
for name in {[_module(file) for file in ENGINE]}:
    importlib.import_module(name)
print(sorted({{name.partition(".")[0] for name in sys.modules}} & {FOREIGN}))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment({}), capture_output=True, text=True, timeout=PATIENCE
    )
    assert (done.stdout.strip(), done.returncode) == ("[]", 0), done.stderr


QUESTION = """
import asyncio
import app
import toolchat
from toolchat import AssistantMessage, ChatClient, ChatModel, ChatResponse, ToolCall, ToolContext, Usage, tool


@tool
async def stock(item: str, context: ToolContext) -> str:
    \"\"\"How many of an item are in stock.\"\"\"
    return f"{context.get('tenant')} has 7 {item}"


class Scripted(ChatModel):
    provider = name = "scripted"

    async def respond(self, prompt, emit):
        if len(prompt.messages) == 1:
            call = ToolCall("1", prompt.tools[0].name, '{"item": "lamps"}')
            return ChatResponse(AssistantMessage(tool_calls=(call,)), "tool_calls", Usage(), self.name)
        return ChatResponse(AssistantMessage(prompt.messages[-1].responses[0].text), "stop", Usage(), self.name)


async def main():
    client = ChatClient.create(Scripted(), tools=[stock], tool_context={"tenant": "acme"})
    print(app.NAME, toolchat.__file__, await client.prompt("How many lamps?").call().content(), sep="|")


asyncio.run(main())
"""


def _run(*command: str | Path, cwd: Path) -> str:
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, env=kept, capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _built_wheel(folder: Path) -> Path:
    """Build the wheel from a copy, since a build leaves files beside its sources."""
    source = folder / "source"
    copytree(ROOT / "toolchat", source / "toolchat", ignore=lambda *_: {"__pycache__"})
    copytree(ROOT / "app", source / "app", ignore=lambda *_: {"__pycache__"})
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        copy(ROOT / name, source)
    # An environment that was made before setuptools belonged to it takes the backend from an index.
    here = ["--no-build-isolation"] if int(version("setuptools").partition(".")[0]) >= 77 else []
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet", "--no-deps", *here]
    _run(*pip, "--wheel-dir", folder, source, cwd=folder)
    return next(folder.glob("toolchat-*.whl"))


def _environment_with(wheel: Path, folder: Path) -> Path:
    """An environment with the wheel, with the packages of this one, and with somebody's own package ``app``."""
    venv.create(folder, with_pip=False)
    site = next(folder.glob("lib/python*/site-packages"))
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)  # as pip does
    (site / "here.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    (site / "app").mkdir()
    (site / "app" / "__init__.py").write_text("NAME = 'unrelated'", encoding="utf-8")
    return folder / "bin" / "python"


@pytest.mark.slow
def test_the_wheel_holds_the_engine_alone_and_answers_a_question_beside_a_package_called_app(tmp_path: Path) -> None:
    wheel = _built_wheel(tmp_path)
    with zipfile.ZipFile(wheel) as archive:
        tops = {name.partition("/")[0] for name in archive.namelist()}
    assert tops == {"toolchat", f"{wheel.name.removesuffix('-py3-none-any.whl')}.dist-info"}
    python = _environment_with(wheel, tmp_path / "environment")
    name, where, answer = _run(python, "-c", QUESTION, cwd=tmp_path).strip().split("|")
    assert (name, answer) == ("unrelated", "acme has 7 lamps")
    assert Path(where).is_relative_to(tmp_path / "environment")
