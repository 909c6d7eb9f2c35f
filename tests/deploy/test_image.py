"""The image that the Dockerfile describes, built in a folder: what is in it, and that it serves."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.command_line import run
from tests.deploy.dockerfile import ROOT, Image, environment, the
from tests.programs import require_linux
from tests.waiting import PATIENCE

pytestmark = [pytest.mark.package, pytest.mark.slow(seconds=60)]


SET_BY_TESTS = ("EXAMPLES_ENABLED", "WEATHER_PROVIDER")


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    require_linux()
    folder = tmp_path_factory.mktemp("image")
    arguments = ["--no-deps", "--require-hashes", "--retries", "1", "-r", str(ROOT / "requirements-build.lock")]
    command = [sys.executable, "-m", "pip", "download", *arguments, "--dest", str(folder / "downloaded")]
    if subprocess.run(command, stdout=sys.stderr).returncode != 0:
        pytest.skip("there is no package index that pip reaches")
    built = Image(folder)
    built.build()
    return built


def variables(image: Image, **others: str) -> dict[str, str]:
    """The image's environment; its user's own settings are not."""
    own = {name: image.inside(value).replace("$PATH", "/usr/bin:/bin") for name, value in environment().items()}
    return {"CHAT_PROVIDER": "offline", **own, "SERVER_HOST": "127.0.0.1", **others}


def command(image: Image, *arguments: str, **others: str) -> subprocess.CompletedProcess[str]:
    own = variables(image, **others)
    program = Path(image.inside("/opt/venv/bin"), arguments[0])
    return subprocess.run(
        [program, *arguments[1:]], cwd=image.path("."), env=own, capture_output=True, text=True, timeout=PATIENCE
    )


def files(image: Image) -> set[Path]:
    return {each for each in (image.folder / "root/opt").rglob("*") if not each.is_symlink()}


@pytest.fixture
def served(image: Image) -> Generator[str, None, None]:
    """The port of a service that is started by the image's command."""
    program, *arguments = json.loads(the("CMD"))
    started = [Path(image.inside("/opt/venv/bin"), program), *arguments]
    own = variables(image, SERVER_PORT="0")
    with subprocess.Popen(started, cwd=image.path("."), env=own, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            yield next(found[1] for line in process.stderr if (found := re.search(r"toolchat on http\S+:(\d+)", line)))
        finally:
            process.terminate()
            process.communicate(timeout=PATIENCE)
    assert process.returncode == 0


def test_it_serves_is_healthy_and_writes_nothing_beside_its_state(image: Image, request: pytest.FixtureRequest) -> None:
    before = files(image)
    port = request.getfixturevalue("served")
    check = json.loads(the("HEALTHCHECK").partition("CMD ")[2])

    assert command(image, *check, SERVER_PORT=port).returncode == 0
    assert files(image) == before
    assert (image.folder / "root/data/toolchat.db").exists()


def test_a_user_that_the_platform_chooses_can_keep_the_state(image: Image) -> None:
    # Such a user has the group 0, to which the Dockerfile gives the folder.
    assert Path(image.inside("/data")).stat().st_mode & 0o777 == 0o775
    assert "--chown=10001:0 /opt/toolchat/data /data/" in (ROOT / "Dockerfile").read_text(encoding="utf-8")


def test_its_tools_are_those_of_the_example_application(image: Image, tmp_path: Path) -> None:
    listed = command(image, "toolchat", "tools", "list", **{each: os.environ[each] for each in SET_BY_TESTS})
    assert (listed.returncode, listed.stdout) == (0, run("tools", "list", cwd=tmp_path).stdout)


def test_mounted_tools_take_their_place(image: Image, tmp_path: Path) -> None:
    assert command(image, "toolchat", "new-tool", "coins", "--path", str(tmp_path / "tools")).returncode == 0
    own = command(image, "toolchat", "tools", "list", TOOLS_PATH=str(tmp_path / "tools")).stdout
    assert "coins" in own
    assert "getCityTimeFunction" not in own


def test_it_holds_the_example_and_the_packages_and_every_user_may_read_them(image: Image) -> None:
    assert [each.name for each in image.path(".").iterdir()] == ["app"]
    modes = {each: each.stat().st_mode & 0o777 for each in files(image)}
    assert [each for each, mode in modes.items() if mode & 0o044 != 0o044 or mode & 0o022] == []
    assert not [each for each in modes if each.name.startswith((".env", "flit_core-"))]
