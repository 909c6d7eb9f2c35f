"""Folders of tools of one's own (``TOOLS_PATH``): what they may hold, and beside the built-in ones, without a build."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from tests.command_line import run, started
from tests.serving import serving
from tests.waiting import PATIENCE

DICE = """
from toolchat import ToolModule


async def castDice(sides: int = 6) -> str:
    "Cast a die."
    return f"cast {sides}"


module = ToolModule(functions=(castDice,), default_query="Please cast a die")
"""
PRICES = {
    "prices/__init__.py": """
from prices.client import PriceClient, PriceSettings
from toolchat import ToolModule, tool

from .client import PriceClient as SameClient

assert SameClient is PriceClient


@tool(name="findPrice", description="Find the price of an article")
class FindPrice:
    def __init__(self, client: PriceClient) -> None:
        self._client = client

    async def __call__(self, article: str) -> str:
        return await self._client.price(article)


module = ToolModule(settings=PriceSettings, functions=(FindPrice,), provides=(PriceClient,))
""",
    "prices/client.py": """
from typing import ClassVar

from pydantic import Field

from toolchat import BaseUrl, OutboundHttp, Secret, ToolSettings


class PriceSettings(ToolSettings):
    required: ClassVar[tuple[str, ...]] = ("api_key",)
    api_key: Secret | None = Field(None, description="Key")
    base_url: BaseUrl = Field("https://prices.example", description="Address")


class PriceClient:
    def __init__(self, settings: PriceSettings, http: OutboundHttp) -> None:
        self.settings, self._http = settings, http

    async def price(self, article: str) -> str:
        key = self.settings.api_key.get_secret_value()
        reply = await self._http.httpx.get(f"{self.settings.base_url}/{article}", headers={"X-Key": key}, timeout=5)
        return reply.text
""",
    "prices/routes.py": """
from dishka.integrations.fastapi import DishkaRoute, FromDishka
from fastapi import APIRouter

from prices.client import PriceClient

router = APIRouter(prefix="/prices", route_class=DishkaRoute)


@router.get("/address")
async def address(client: FromDishka[PriceClient]) -> str:
    return client.settings.base_url
""",
}


def write(folder: Path, files: Mapping[str, str]) -> Path:
    for name, source in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(source, encoding="utf-8")
    return folder


@pytest.fixture
def two_folders(tmp_path: Path) -> str:
    one, two = write(tmp_path / "one", {"dice/__init__.py": DICE}), write(tmp_path / "two", PRICES)
    return f"{one}:{two}"


def lines_of_start(tmp_path: Path, tools_path: str, **variables: str) -> list[str]:
    """What the start says of folders that cannot be loaded."""
    done = run("tools", cwd=tmp_path, TOOLS_PATH=tools_path, **variables)
    assert done.returncode == 2
    return done.stderr.splitlines()


def asked(tmp_path: Path, variables: Mapping[str, str]) -> list[object]:
    """Ask a service in a process of its own; what its routes and its documentation show."""
    with (
        started(cwd=tmp_path, **variables) as (_, url),
        httpx.Client(base_url=url, timeout=PATIENCE, trust_env=False, verify=False) as client,
    ):
        document = client.get("/openapi.json").json()["paths"]
        return [
            client.get("/dice/chat-tool-function").text,
            client.post("/tools/findPrice", json={"article": "lamp"}).json()["result"],
            client.get("/prices/address").json(),
            sorted(path for path in document if path.startswith(("/dice", "/prices"))),
            sorted(each["name"] for each in client.get("/tools").json() if each["name"] in ("dice", "prices")),
        ]


async def test_their_routes_settings_and_upstream_calls_work(tmp_path: Path, two_folders: str) -> None:
    # The client is reached by an absolute and by a relative import: both give the one class that the container knows.
    async def price(request: Request) -> PlainTextResponse:
        return PlainTextResponse(f"{request.path_params['article']} {request.headers['x-key']}")

    async with serving(Starlette(routes=[Route("/{article}", price)])) as upstream:
        variables = {"TOOLS_PATH": two_folders, "PRICES_API_KEY": "k", "PRICES_BASE_URL": upstream}
        shown = await asyncio.to_thread(asked, tmp_path, variables)
    assert "cast 6" in str(shown[0])
    assert shown[1:] == [
        "lamp k",
        upstream,
        ["/dice/chat", "/dice/chat-tool-function", "/prices/address"],
        ["dice", "prices"],
    ]


def test_a_tool_of_a_name_that_exists_already_stops_the_start_with_both_files(tmp_path: Path) -> None:
    folder = write(tmp_path / "own", {"clock/__init__.py": DICE.replace("castDice", "getCityTimeFunction")})
    (line,) = lines_of_start(tmp_path, str(folder))
    assert "own/clock/__init__.py" in line
    assert "app/tools/time/" in line


@pytest.mark.parametrize(
    ("files", "line"),
    [
        (
            {"broken/__init__.py": "from broken.client import nothing", "broken/client.py": "\ndef f(:"},
            "own/broken/client.py: cannot be imported: SyntaxError: invalid syntax (line 2)",
        ),
        (
            {"dice/__init__.py": DICE, "dice/routes.py": "router = None"},
            "own/dice/routes.py: there is no 'router = APIRouter(...)'",
        ),
        ({"dice/__init__.py": DICE, "dice.py": DICE}, "own/dice: own/dice.py has this name, too"),
        (
            {"dice.py": "from _faces import SIX\n" + DICE, "_faces.py": "\nSIX = 6 / 0"},
            "own/_faces.py: cannot be imported: ZeroDivisionError: division by zero (line 2)",
        ),
        ({"_thread.py": ""}, "own/_thread: rename it, since built-in has this name, too"),
        ({"my-dice/__init__.py": DICE}, "own/my-dice: the name must be a Python identifier"),
    ],
)
def test_a_package_that_cannot_be_loaded_is_named_with_file_and_line(
    files: Mapping[str, str], line: str, tmp_path: Path
) -> None:
    folder = write(tmp_path / "own", files)
    assert lines_of_start(tmp_path, str(folder)) == [f"toolchat: {line}"]


def test_a_folder_that_is_missing_stops_the_start(tmp_path: Path) -> None:
    assert lines_of_start(tmp_path, f"{tmp_path}:/nowhere/tools") == [
        "toolchat: TOOLS_PATH: there is neither a folder nor an installed package /nowhere/tools"
    ]


def test_a_package_in_place_of_its_folder_stops_the_start(tmp_path: Path) -> None:
    folder = write(tmp_path / "own", {"dice/__init__.py": DICE})
    expected = "toolchat: TOOLS_PATH: own/dice is a tool; name the folder that it is in"
    assert lines_of_start(tmp_path, str(folder / "dice")) == [expected]


def test_a_package_hides_no_other_module_of_its_name(tmp_path: Path) -> None:
    # ``colorsys`` is the standard library's for everybody, for the package of that name too.
    source = "import colorsys\n" + DICE.replace('f"cast {sides}"', "str(colorsys.rgb_to_hsv(0, 0, sides))")
    folder = write(tmp_path / "own", {"colorsys/__init__.py": source})
    done = run("tools", "run", "castDice", "sides=1", cwd=tmp_path, TOOLS_PATH=str(folder))
    assert (done.returncode, done.stdout) == (0, "(0.6666666666666666, 1.0, 1)\n")


def test_a_file_is_a_module_like_a_package_with_its_settings_and_faults(tmp_path: Path) -> None:
    folder = write(tmp_path / "own", {"dice.py": DICE})
    run_dice = ("tools", "run", "castDice", "sides=1")
    assert run(*run_dice, cwd=tmp_path, TOOLS_PATH=str(folder)).stdout == "cast 1\n"
    listed = run("tools", cwd=tmp_path, TOOLS_PATH=str(folder), DICE_ENABLED="false").stdout
    assert "Dice (/dice): switched off: set DICE_ENABLED=true" in listed


def test_the_folder_tools_is_loaded_if_no_variable_names_another(tmp_path: Path) -> None:
    write(tmp_path / "tools", {"dice/__init__.py": DICE})
    assert "Dice (/dice): registered" in run("tools", cwd=tmp_path).stdout.splitlines()
    other = write(tmp_path / "other", {"prices/__init__.py": DICE})
    assert "Dice (/dice)" not in run("tools", cwd=tmp_path, TOOLS_PATH=str(other)).stdout


def test_an_installed_package_is_named_instead_of_a_folder(tmp_path: Path) -> None:
    write(tmp_path, {"shop/__init__.py": "", "shop/tools/__init__.py": "", "shop/tools/dice/__init__.py": DICE})
    done = run("tools", "run", "castDice", "sides=1", cwd=tmp_path, TOOLS_PATH="shop.tools")
    assert (done.returncode, done.stdout) == (0, "cast 1\n")
    for name in ("shop.nothing", "nothing.tools"):
        assert lines_of_start(tmp_path, name) == [
            f"toolchat: TOOLS_PATH: there is neither a folder nor an installed package {name}"
        ]


def test_a_folder_within_a_package_is_loaded_under_the_names_by_which_its_code_imports_it(tmp_path: Path) -> None:
    files = {"shop/__init__.py": "", "shop/tools/__init__.py": "", "shop/sides.py": "SIDES = 4"}
    source = "import sys\nfrom shop.tools.dice import faces\n" + DICE
    source = source.replace('f"cast {sides}"', "' '.join(name for name in sys.modules if name.endswith('dice'))")
    write(tmp_path, {**files, "shop/tools/dice/__init__.py": source})
    write(tmp_path, {"shop/tools/dice/faces.py": "from ...sides import SIDES"})
    for tools_path in ("shop.tools", "shop/tools", "shop.tools:shop/tools", "shop/tools:shop.tools"):
        done = run("tools", "run", "castDice", cwd=tmp_path, TOOLS_PATH=tools_path)
        assert (done.returncode, done.stdout) == (0, "shop.tools.dice\n"), done.stderr


def test_two_folders_cannot_both_have_shared_code_of_one_name(tmp_path: Path) -> None:
    one, two = (write(tmp_path / name, {"_money.py": f"RATE = '{name}'"}) for name in ("one", "two"))
    assert lines_of_start(tmp_path, f"{one}:{two}") == [
        f"toolchat: two/_money: rename it, since {one}/_money.py has this name, too"
    ]


def test_a_folder_of_tools_may_be_a_package_and_a_folder_without_one_is_named(tmp_path: Path) -> None:
    files = {"__init__.py": "", "dice.py": DICE, "coins/coins.py": DICE, "tests/help.py": DICE, "data/prices.csv": ""}
    done = run("tools", cwd=tmp_path, TOOLS_PATH=str(write(tmp_path / "own", files)))
    assert "Dice (/dice): registered" in done.stdout
    assert [line for line in done.stderr.splitlines() if "is not loaded" in line] == [
        "toolchat: WARNING: own/coins: is not loaded, since it has no __init__.py"
    ]


SHARED = {"_money/__init__.py": "RATE = 3", "_units.py": "from _money import RATE"}


def test_modules_share_code_whose_name_begins_with_an_underscore(tmp_path: Path) -> None:
    dice = "from _units import RATE\n" + DICE.replace('f"cast {sides}"', "str(RATE * sides)")
    coins = "from _money import RATE\n" + DICE.replace("castDice", "tossCoin")
    folder = write(tmp_path / "own", {**SHARED, "dice/__init__.py": dice, "coins.py": coins})
    done = run("tools", "run", "castDice", "sides=2", cwd=tmp_path, TOOLS_PATH=str(folder))
    assert (done.returncode, done.stdout, "is not loaded" in done.stderr) == (0, "6\n", False)


def test_a_script_beside_the_modules_is_named_and_not_run(tmp_path: Path) -> None:
    files = {"dice.py": DICE, "deploy.py": "raise SystemExit(9)", "test_dice.py": "1 / 0", "conftest.py": "1 / 0"}
    done = run("tools", cwd=tmp_path, TOOLS_PATH=str(write(tmp_path / "own", files)))
    assert "Dice (/dice): registered" in done.stdout
    (warning,) = [line for line in done.stderr.splitlines() if "is not loaded" in line]
    assert warning.endswith(
        "own/deploy.py: is not loaded, since it has no ToolModule; begin the name of shared code with _"
    )
