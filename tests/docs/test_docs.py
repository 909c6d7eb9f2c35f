"""Every Python block of the documentation runs as it stands."""

import ast
import asyncio
import inspect
import re
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from scripts import reference
from scripts.env_example import settings_classes
from scripts.readme import tool_folders, written_tools
from tests.application import read_configuration
from tests.command_line import ROOT, started
from tests.players.openai_player import OpenAIPlayer, sensible_model
from tests.serving import serving
from tests.waiting import PATIENCE
from toolchat.chat.advisors.base import Advisor
from toolchat.chat.client import ChatClient
from toolchat.errors import ToolchatError, UpstreamError
from toolchat.http.client import OutboundHttp
from toolchat.service.composition.lifespan import open_service

JSON = {"Accept": "application/json"}
PAGES = [
    ROOT / name
    for name in (
        "docs/tools.md",
        "docs/approvals.md",
        "docs/advisors.md",
        "docs/offline-model.md",
        "docs/command-line.md",
        "docs/from-spring-ai.md",
        "CONTRIBUTING.md",
    )
]
ERRORS = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")


def blocks_of(page: Path) -> Iterator[str]:
    """Every Python block of a page; not those of files that import another file of their folder."""
    text = page.read_text(encoding="utf-8")
    beside = [source for file, source in tool_folders(text).items() if not file.endswith("__init__.py")]
    found = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    yield from (each for each in found if each not in beside)


BLOCKS = [(page, block) for page in PAGES for block in blocks_of(page)]


def compiled(page: Path, block: str) -> CodeType:
    """A block that may await at its outermost level."""
    code: CodeType = compile(block, str(page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    return code


@pytest.fixture(scope="module")
async def chat() -> AsyncGenerator[ChatClient, None]:
    async with open_service(read_configuration()) as state:
        yield state.chat


@pytest.mark.parametrize(("page", "block"), BLOCKS, ids=[f"{page.stem}-{n}" for n, (page, _) in enumerate(BLOCKS)])
async def test_a_code_block_of_a_page_runs_unchanged(page: Path, block: str, chat: ChatClient) -> None:
    running = eval(compiled(page, block), {"__name__": "shown", "client": chat})
    if inspect.iscoroutine(running):
        await running


PROVIDER = dict(
    re.findall(
        r"`(toolchat/[\w/]+\.py)`:\n\n```python\n(.*?)^```$",
        (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## A provider")[2],
        re.MULTILINE | re.DOTALL,
    )
)


@pytest.mark.parametrize("file", ["toolchat/models/acme.py", "toolchat/service/settings/providers.py"])
def test_the_files_of_a_provider_keep_the_rules_of_the_places_where_they_belong(file: str) -> None:
    assert "service" in file or "toolchat.service" not in PROVIDER[file]
    check = [sys.executable, "-m", "ruff", "check", "--no-cache", "--ignore", "D100", "--stdin-filename", file, "-"]
    done = subprocess.run(check, cwd=ROOT, input=PROVIDER[file], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


async def test_the_provider_answers_and_reports_errors() -> None:
    async def complete(request: Request) -> JSONResponse:
        text = (await request.json())["prompt"]
        return JSONResponse({"text": text.upper()}, 500 if text == "fail" else 200)

    names: dict[str, Any] = {"__name__": "shown"}
    exec(PROVIDER["toolchat/models/acme.py"], names)
    http = OutboundHttp()
    async with serving(Starlette(routes=[Route("/complete", complete, methods=["POST"])])) as url:
        client = ChatClient(names["AcmeChatModel"](base_url=url, model="acme-1", http=http))
        assert await client.prompt("hello").call().content() == "HELLO"
        with pytest.raises(UpstreamError):
            await client.prompt("fail").call().content()
    await http.aclose()


async def test_the_blocks_about_the_library_run_one_after_the_other() -> None:
    page = ROOT / "docs" / "library.md"
    blocks = re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {"__name__": "shown"}
    async with OpenAIPlayer(sensible_model({"item": "lamps"})) as player:
        for block in blocks:
            here = block.replace("asyncio.run(main())", "await main()")
            running = eval(compiled(page, here.replace("http://localhost:11434/v1", player.base_url)), names)
            if inspect.iscoroutine(running):
                await running
    assert (len(blocks), len(player.requests)) == (6, 2)


async def air(request: Request) -> JSONResponse:
    """Plays the upstream of the folder in ``tools.md``."""
    city = request.query_params["city"]
    if request.headers.get("x-key") != "secret" or city == "Nowhere":
        return JSONResponse({}, 404)
    return JSONResponse({"city": city, "index": 42})


@contextmanager
def documented_folder(tmp_path: Path, **variables: str) -> Generator[httpx.Client, None, None]:
    """The service with the folder that ``tools.md`` shows; gives a client for it."""
    tools = written_tools(tmp_path, ROOT / "docs" / "tools.md")
    with (
        started(cwd=tmp_path, TOOLS_PATH=str(tools), **variables) as (_, url),
        httpx.Client(base_url=url, timeout=PATIENCE, trust_env=False, verify=False) as client,
    ):
        yield client


def quality_and_answers(client: httpx.Client) -> list[Any]:
    """What the folder's own route and its two variants give, and what the route says of an unknown city."""
    unknown, own = (client.get(f"/air/quality/{city}") for city in ("Nowhere", "Rome"))
    variants = [client.get(f"/air/chat-tool-{kind}", headers=JSON).json() for kind in ("function", "method")]
    calls = [(each["tool_calls"][0]["name"], each["tool_calls"][0]["result"]) for each in variants]
    return [(unknown.status_code, unknown.json()["code"]), own.json(), *calls]


async def test_the_whole_folder_answers_by_both_forms_of_the_tool_and_by_its_own_route(tmp_path: Path) -> None:
    # Its settings, its client, its key in the header and its error work as ``tools.md`` shows them.
    upstream = Starlette(routes=[Route("/v1/quality", air)])
    async with serving(upstream) as url:
        with documented_folder(tmp_path, AIR_API_KEY="secret", AIR_BASE_URL=f"{url}/v1") as client:
            given = await asyncio.to_thread(quality_and_answers, client)
    assert given == [
        (404, "not-found"),
        {"city": "Rome", "index": 42},
        ("airQualityFunction", '{"city":"Paris","index":42}'),
        ("airQualityMethod", '{"city":"Paris","index":42}'),
    ]


@pytest.mark.parametrize(
    ("variables", "detail"),
    [
        ({}, "Air: not configured: set AIR_API_KEY"),
        ({"AIR_API_KEY": "secret", "AIR_ENABLED": "false"}, "Air: switched off: set AIR_ENABLED=true"),
    ],
    ids=["no key", "switched off"],
)
def test_every_route_of_the_folder_names_the_variable_that_is_missing(
    variables: dict[str, str], detail: str, tmp_path: Path
) -> None:
    with documented_folder(tmp_path, **variables) as client:
        for path in ("/air/chat-tool-function", "/air/chat-tool-method", "/air/quality/Rome"):
            refused = client.get(path)
            assert (refused.status_code, refused.json()["detail"]) == (503, detail)


def kinds(of: Any) -> Iterator[Any]:
    """A class and all that are derived from it in the application."""
    yield of
    for child in of.__subclasses__():
        if child.__module__.startswith(("app.", "toolchat.")):
            yield from kinds(child)


def test_the_page_about_errors_has_a_row_for_every_code_with_its_status_and_whether_to_try_again() -> None:
    told = {
        (code, status, retryable)
        for code, statuses, retryable in re.findall(
            r"^\| `([a-z-]+)` \| ([\d, ]+) \| (yes|no) \|", ERRORS, re.MULTILINE
        )
        for status in statuses.split(", ")
    }
    # What only a protocol of others says is told in its own form, and never as a problem document.
    raised = {
        each
        for each in kinds(ToolchatError)
        if not each.__module__.startswith(("toolchat.service.api.", "toolchat.service.protocols."))
    } - {UpstreamError}
    there_are = {(each.code, str(each.status), "yes" if each.retryable else "no") for each in raised}
    assert told == there_are | {
        ("method-not-allowed", "405", "no"),
        ("already-decided", "404", "no"),
        ("approval-by-another", "403", "no"),
    }


def test_the_page_of_reference_is_made_from_the_docstrings() -> None:
    assert reference.PAGE.read_text(encoding="utf-8") == reference.written(), "run: make docs"


def test_the_table_of_advisors_has_each_with_its_order() -> None:
    settings_classes()  # which imports the whole application
    page = (ROOT / "docs" / "advisors.md").read_text(encoding="utf-8")
    told = [(int(order), name) for order, name in re.findall(r"^\| (-?\d+) \| `(\w+)` \|", page, re.MULTILINE)]
    there_are = {(each.order, each.__name__) for each in kinds(Advisor) if "order" in vars(each)}
    assert told == sorted(told, key=lambda row: row[0])
    assert set(told) == {row for row in there_are if row[1] not in ("Advisor", "BaseAdvisor")}
