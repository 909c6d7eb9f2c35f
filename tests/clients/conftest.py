"""The service as a separate process, and a scripted model behind it."""

import asyncio
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tests.players.openai_player import Answer, OpenAIPlayer, PlayedRequest, Script, message, whole

ROOT = Path(__file__).parents[2]
PYTHON = os.environ.get("TOOLCHAT_PYTHON", str(ROOT / ".venv" / "bin" / "python"))
"""The interpreter that has the service's packages; this one has the clients'."""
PACKAGES = ROOT / "tests" / "clients" / "npm" / "node_modules"
"""What `make test-clients` has installed from npm."""
PATIENCE = 60.0
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # it fetches a list of prices as it is imported
TIME = {"name": "getCityTimeFunction", "arguments": '{"timeZoneId":"Asia/Shanghai"}'}


def node_program() -> str:
    """The Node.js that lies beside the packages; a distribution may have an older one."""
    return next((str(each) for each in PACKAGES.glob("node-*/bin/node")), shutil.which("node") or "node")


def node(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run JavaScript to its end."""
    return subprocess.run(
        [node_program(), *map(str, arguments)], cwd=cwd, capture_output=True, text=True, timeout=PATIENCE, check=False
    )


def bundled(folder: Path, *options: str) -> str:
    """The script of a page: a folder's main.jsx with the packages that it imports."""
    (folder / "node_modules").symlink_to(PACKAGES)
    define = '--define:process.env.NODE_ENV="production"'
    esbuild = PACKAGES / "esbuild" / "bin" / "esbuild"
    made = node(esbuild, "main.jsx", "--bundle", "--log-level=error", define, *options, cwd=folder)
    assert made.returncode == 0, made.stderr
    return made.stdout


@dataclass
class Model:
    """Records the service's requests, and responds with the script of the running test."""

    turns: list[Answer] = field(default_factory=list)
    requests: list[PlayedRequest] = field(default_factory=list)

    def plays(self, *turns: Answer) -> None:
        self.turns, self.requests = list(turns), []

    def __call__(self, request: PlayedRequest) -> Answer:
        self.requests.append(request)
        return self.turns.pop(0) if self.turns else whole({"error": {"message": "no turn left"}}, 400)


def says(text: str) -> Answer:
    usage = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
    return whole(message(content=text, usage=usage))


def calls(*functions: dict[str, str]) -> Answer:
    """A turn that calls tools: ``TIME`` is the service's own, everything else the client's."""
    named: Sequence[dict[str, Any]] = [
        {"id": f"call_{number}", "type": "function", "function": function} for number, function in enumerate(functions)
    ]
    return whole(message("tool_calls", content=None, tool_calls=named))


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def _played() -> Iterator[tuple[Model, str]]:
    model = Model()
    with playing(model) as url:
        yield model, url


@contextmanager
def playing(script: Script) -> Iterator[str]:
    """Play a model on a loop of its own, since some clients block theirs; gives its base URL."""
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever)
    thread.start()
    player = OpenAIPlayer(script)
    asyncio.run_coroutine_threadsafe(player.__aenter__(), loop).result(PATIENCE)
    yield player.base_url
    asyncio.run_coroutine_threadsafe(player.__aexit__(None, None, None), loop).result(PATIENCE)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(PATIENCE)


@pytest.fixture(scope="session")
def base_url(_played: tuple[Model, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The base URL for clients."""
    with started(ROOT, tmp_path_factory.mktemp("service"), _played[1]) as url:
        yield f"{url}/v1"


@contextmanager
def started(project: Path, folder: Path, model_url: str, **more: str) -> Iterator[str]:
    """Run the service with the tools of a project, in front of a model, with more variables; gives its URL."""
    variables = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
        **({"TOOLS_PATH": str(project / "tools")} if (project / "tools").is_dir() else {}),
        "SERVER_PORT": "0",
        "OPENAI_BASE_URL": model_url,
        "MODEL_MAX_ATTEMPTS": "1",
        "LOG_LEVEL": "ERROR",
        **more,
    }
    with (folder / "log").open("w+", encoding="utf-8") as log:
        process = subprocess.Popen([PYTHON, "-m", "app"], cwd=folder, env=variables, stderr=log, text=True)
        try:
            yield _url(folder / "log", process)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(PATIENCE)


def _url(log: Path, process: subprocess.Popen[str]) -> str:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        first = log.read_text(encoding="utf-8").partition("\n")[0]
        if found := re.search(r"toolchat on (\S+)", first):
            return found[1]
        time.sleep(0.05)
    raise RuntimeError(log.read_text(encoding="utf-8"))


@pytest.fixture
def model(_played: tuple[Model, str]) -> Model:
    _played[0].plays()
    return _played[0]
