"""The wheel as users install it: from an index into an environment of their own, beside a package called ``app``."""

import os
import re
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path
from shutil import copy, copytree

import httpx
import pytest

from tests.command_line import ROOT
from tests.waiting import PATIENCE

pytestmark = [pytest.mark.package, pytest.mark.slow(seconds=60)]

LARGEST_ENVIRONMENT = 200_000_000
"""Bytes that the packages of a tool's author take at most: the service, and pytest for the tests."""


def run(*command: str | Path, cwd: Path, code: int = 0, **variables: str) -> str:
    """Run a command as a user's shell does, without variables of this environment; returns what it prints."""
    inherited = {name: os.environ[name] for name in os.environ if name.startswith(("PATH", "PIP_", "SSL_", "LANG"))}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=inherited | {"HOME": str(cwd), "STATE_URL": "memory://", **variables},
        capture_output=True,
        text=True,
        timeout=10 * PATIENCE,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy, since a build leaves files beside its sources."""
    folder = tmp_path_factory.mktemp("wheel")
    copytree(ROOT / "toolchat", folder / "source" / "toolchat", ignore=lambda *_: {"__pycache__"})
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        copy(ROOT / name, folder / "source")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet", "--no-deps"]
    run(*pip, "--no-build-isolation", "--wheel-dir", folder, folder / "source", cwd=folder)
    return next(folder.glob("toolchat-*.whl"))


def environment_with(folder: Path, *packages: str) -> Path:
    """A new environment with packages from the index that pip is set up for; gives its folder of programs."""
    venv.create(folder, with_pip=True)
    pip: list[str | Path] = [
        folder / "bin" / "python",
        "-m",
        "pip",
        "--disable-pip-version-check",
        "install",
        "--quiet",
    ]
    run(*pip, *packages, cwd=folder.parent)
    return folder / "bin"


@pytest.fixture(scope="module")
def author(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the author of a tool installs."""
    return environment_with(tmp_path_factory.mktemp("author") / "venv", f"{wheel}[service]", "pytest")


@pytest.fixture(scope="module")
def shop(author: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with a package ``app`` of its own, which a tool imports, and with the tool that ``new-tool`` writes."""
    folder = tmp_path_factory.mktemp("shop")
    (folder / "app").mkdir()
    (folder / "app" / "__init__.py").write_text('NAME = "the shop"\n', encoding="utf-8")
    printed = run(author / "toolchat", "new-tool", "coins", cwd=folder)
    assert "tools/coins/__init__.py" in printed
    uses_app = "import app\nfrom toolchat import ToolModule\n\n\ndef owner() -> str:\n    return app.NAME\n\n\n"
    (folder / "tools" / "owner.py").write_text(f"{uses_app}module = ToolModule(functions=(owner,))\n", encoding="utf-8")
    return folder


def test_the_wheel_holds_the_two_layers_with_their_pages_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert {name.partition("/")[0] for name in names} == {"toolchat", "toolchat-0.1.0.dist-info"}
    tracked = subprocess.run(["git", "ls-files", "toolchat"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert set(tracked.stdout.split()) == {name for name in names if name.startswith("toolchat/")}


def test_an_author_installs_no_sdk_of_a_provider_and_less_than_the_limit(author: Path) -> None:
    packages = [file for file in author.parent.rglob("*") if file.is_file() and not file.is_symlink()]
    names = {file.parts[-2].lower() for file in packages if file.name == "METADATA"}
    assert [name for name in names if name.startswith(("dashscope", "redis", "opentelemetry_sdk"))] == []
    assert sum(file.stat().st_size for file in packages) < LARGEST_ENVIRONMENT


def test_the_first_tool_passes_its_test_and_runs(author: Path, shop: Path) -> None:
    assert "2 passed" in run(author / "python", "-m", "pytest", "-q", "tools", cwd=shop)
    assert "Paris" in run(author / "toolchat", "tools", "run", "coins", "city=Paris", cwd=shop)
    assert run(author / "toolchat", "tools", "run", "owner", cwd=shop).splitlines()[0] == "the shop"
    assert "Coins" in run(author / "toolchat", "check", cwd=shop, CHAT_PROVIDER="offline")


def test_strict_types_of_the_first_tool_hold(author: Path, shop: Path) -> None:
    checked: list[str | Path] = [
        "--strict",
        "--python-executable",
        author / "python",
        "tools/coins/__init__.py",
        "tools/test_coins.py",
    ]
    assert "Success" in run(sys.executable, "-m", "mypy", *checked, cwd=shop, MYPYPATH="tools")


OUTER = """
from fastapi import FastAPI

from toolchat.service import create_app

ai = create_app()
outer = FastAPI(lifespan=ai.lifespan)
outer.mount("/ai", ai)
"""


@pytest.fixture(scope="module", params=["command", "mounted"])
def url(request: pytest.FixtureRequest, author: Path, shop: Path) -> Iterator[str]:
    """The address of the service, started by its own command or mounted in an application of the project's own."""
    (shop / "outer.py").write_text(OUTER, encoding="utf-8")
    mounted: list[str | Path] = [author / "python", "-m", "uvicorn", "outer:outer", "--port", "0"]
    own: list[str | Path] = [author / "toolchat", "serve", "--port", "0"]
    command = own if request.param == "command" else mounted
    variables = {"PATH": os.environ["PATH"], "CHAT_PROVIDER": "offline", "STATE_URL": "memory://"}
    with subprocess.Popen(command, cwd=shop, env=variables, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        lines = (re.search(r"(?:toolchat|running) on (http://\S+?)[\s\"]", line) for line in process.stderr)
        address = next(found[1] for found in lines if found)
        yield address if request.param == "command" else f"{address}/ai"
        process.terminate()
        process.communicate(timeout=PATIENCE)


def test_a_question_is_answered_and_the_pages_are_there(url: str) -> None:
    with httpx.Client(trust_env=False, timeout=PATIENCE, follow_redirects=True) as client:
        answer = client.get(f"{url}/coins/chat-tool-function")  # by the question that the module proposes
        page = client.get(f"{url}/playground")
        files = [str(page.url.join(each)) for each in re.findall(r'(?:src|href)="([\w./-]+)"', page.text)]
        loaded = [client.get(each).status_code for each in (*files, f"{url}/docs", f"{url}/openapi.json")]
    assert (answer.status_code, "Paris" in answer.text) == (200, True)
    assert len(files) > 3
    assert set(loaded) == {200}


QUESTION = """
import asyncio
from toolchat import ChatClient, tool
from toolchat.testing import ScriptedModel, call


@tool
async def stock(item: str) -> str:
    '''How many of an item are in stock.'''
    return f"there are 7 {item}"


model = ScriptedModel([call("stock", item="lamps"), lambda prompt: prompt.messages[-1].responses[0].text])
client = ChatClient.create(model, tools=[stock])
print(asyncio.run(client.prompt("How many lamps?").call().content()))
"""


def test_the_engine_alone_answers_and_its_command_names_what_is_missing(wheel: Path, tmp_path: Path) -> None:
    programs = environment_with(tmp_path / "venv", str(wheel))
    assert run(programs / "python", "-c", QUESTION, cwd=tmp_path) == "there are 7 lamps\n"
    assert "pip install 'toolchat[service]'" in run(programs / "toolchat", "serve", cwd=tmp_path, code=2)
