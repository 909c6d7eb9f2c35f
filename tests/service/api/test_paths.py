"""Addresses as people and proxies write them: slashes too many, a base that is missing or there twice, a prefix."""

from collections.abc import AsyncGenerator
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from tests.application import create_app, read_configuration
from tests.serving import client_of, service, serving
from toolchat.service.access.keys import digest_of

CHAT = {"model": "toolchat", "messages": [{"role": "user", "content": "hi"}]}
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
ASKED: list[tuple[str, str, Any]] = [
    ("POST", "/mcp", PING),
    ("POST", "/v1/chat/completions", CHAT),
    ("POST", "/v1/responses", {"model": "toolchat", "input": "hi"}),
    ("GET", "/v1/models", None),
    ("GET", "/v1/models/toolchat", None),
    ("POST", "/ai-sdk/chat", {"messages": [{"role": "user", "parts": [{"type": "text", "text": "hi"}]}]}),
    ("POST", "/ag-ui", {"threadId": "t", "runId": "r", "messages": [{"role": "user", "content": "hi"}]}),
    ("GET", "/time/chat", None),
    ("POST", "/chat", {"userInput": "hi"}),
    ("GET", "/chat/stream?userInput=hi", None),
    ("GET", "/tools", None),
    ("GET", "/sessions", None),
    ("GET", "/health/ready", None),
    ("GET", "/openapi.json", None),
    ("GET", "/", None),
]


@pytest.fixture(scope="module")
async def typed() -> AsyncGenerator[httpx.AsyncClient, None]:
    async with service(CHAT_PROVIDER="offline", API_KEYS=f"alice={digest_of('right')}") as client:
        yield client


async def status_of(client: httpx.AsyncClient, method: str, path: str, body: Any, key: str = "right") -> int:
    url = f"{str(client.base_url).rstrip('/')}{path}"  # as it is: httpx would join it without the first slash
    return (await client.request(method, url, json=body, headers={"Authorization": f"Bearer {key}"})).status_code


@pytest.mark.parametrize(("method", "path", "body"), ASKED, ids=lambda each: each if isinstance(each, str) else "")
async def test_a_slash_at_the_end_or_in_front_changes_nothing(
    method: str, path: str, body: Any, typed: httpx.AsyncClient
) -> None:
    path, mark, query = path.partition("?")
    ways = [path, f"{path}/", f"/{path}", f"//{path}//", path.replace("/", "//")]
    found = {way: await status_of(typed, method, f"{way}{mark}{query}", body) for way in ways}
    assert found == dict.fromkeys(ways, 200)


@pytest.mark.parametrize(
    ("method", "path", "body"), [each for each in ASKED if each[1].startswith("/v1/")], ids=lambda each: str(each)[:30]
)
async def test_a_base_url_without_v1_is_enough(method: str, path: str, body: Any, typed: httpx.AsyncClient) -> None:
    short = path.removeprefix("/v1")
    assert [await status_of(typed, method, each, body) for each in (short, f"{short}/", f"/{short}")] == [200] * 3
    assert await status_of(typed, method, short, body, key="wrong") == 401


async def test_an_error_of_a_path_without_v1_names_the_base_url(typed: httpx.AsyncClient) -> None:
    for path, is_named in (("/responses", True), ("/v1/responses", False)):
        answer = await typed.post(path, json=CHAT, headers={"X-API-Key": "right"})
        assert answer.status_code == 400
        assert (
            answer.json()["error"]["message"].endswith(f"; the base URL for clients is {typed.base_url}/v1") == is_named
        )


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1", 404),
        ("GET", "/v1/", 404),
        ("POST", "/v1/v1/chat/completions", 404),
        ("POST", "/v1/chat/completions/chat/completions", 404),
        ("GET", "/v1/chat/completions/models", 404),
        ("POST", "/v1/responses/responses", 405),
        ("POST", "/chat/completions/chat/completions", 404),
        ("POST", "/api/v1/chat/completions", 404),
        ("POST", "/openai/responses/", 404),
        ("GET", "/openai/models", 404),
        ("GET", "/v1/chat/completions", 405),
        ("GET", "/responses", 405),
        ("PUT", "/models", 405),
        ("GET", "/v1/audio", 404),
    ],
)
async def test_what_is_ambiguous_names_the_base_url_in_the_format_of_its_clients(
    method: str, path: str, status: int, typed: httpx.AsyncClient
) -> None:
    answer = await typed.request(method, path, headers={"X-API-Key": "right"})
    assert answer.status_code == status
    said = answer.json()["error"]["message"]
    assert said.endswith(f"; the base URL for clients is {typed.base_url}/v1")
    assert f"{path.removesuffix('/')}: " in said


@pytest.mark.parametrize("path", ["/nothing/", "//nothing", "/mcp/nothing", "/shop/models/5", "/chat//a//b", "/v1x"])
async def test_what_has_no_route_in_any_writing_is_not_found(path: str, typed: httpx.AsyncClient) -> None:
    answer = await typed.get(f"{typed.base_url}{path}", headers={"X-API-Key": "right"})
    assert answer.status_code == 404
    assert answer.json()["detail"].endswith(": not found; GET / lists all routes")


@pytest.mark.parametrize("path", ["/v1/models/openai/gpt-4o", "/v1/models/toolchat/x", "/v1/models/a%2Fb"])
async def test_a_model_whose_id_has_a_slash_is_looked_up_as_such(path: str, typed: httpx.AsyncClient) -> None:
    answer = await typed.get(path, headers={"X-API-Key": "right"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "model_not_found")


async def test_no_writing_of_a_path_needs_less_than_the_path() -> None:
    keys = {"API_KEYS": f"alice={digest_of('right')}", "ALLOW_ANONYMOUS": "true", "SERVER_ROOT_PATH": "/ai"}
    async with service(CHAT_PROVIDER="offline", **keys) as client:
        for path in ("/metrics", "//metrics", "/metrics/", "/ai/metrics", "//ai//metrics//"):
            assert (path, (await client.get(f"{client.base_url}{path}")).status_code) == (path, 401)


@pytest.mark.parametrize("path", ["/docs/", "/playground/", "/playground"])
async def test_pages_are_found_with_and_without_a_slash(path: str, typed: httpx.AsyncClient) -> None:
    page = await typed.get(path, follow_redirects=True)
    beside = await typed.get(page.url.join("docs/page/page.js" if "docs" in path else "playground.js"))
    assert (page.status_code, beside.status_code, "text/html" in page.headers["content-type"]) == (200, 200, True)


@pytest.mark.parametrize("root", ["/ai", "/team/ai"])
@pytest.mark.parametrize("is_stripped", [True, False], ids=["stripped", "whole"])
async def test_below_a_prefix_it_makes_no_difference_whether_the_proxy_strips_it(
    root: str, *, is_stripped: bool
) -> None:
    before = "" if is_stripped else root
    async with service(CHAT_PROVIDER="offline", SERVER_ROOT_PATH=root) as client:
        for method, path, body in [*ASKED, ("GET", "/playground/", None), ("GET", "/models", None)]:
            for way in (path, path.replace("/", "//")) if path != "/playground/" else (path,):
                assert (way, await status_of(client, method, f"{before}{way}", body)) == (way, 200)
        if before:
            assert await status_of(client, "GET", before, None) == 200


async def test_a_prefix_that_is_a_path_of_the_service_is_stripped_by_the_proxy() -> None:
    async with service(CHAT_PROVIDER="offline", SERVER_ROOT_PATH="/time") as client:
        statuses = [(await client.get(path)).status_code for path in ("/time/chat", "/chat", "/time/tools")]
    assert statuses == [200, 422, 200]  # only the chat without a module needs a question


async def test_a_mounted_application_takes_every_writing_too() -> None:
    ai = create_app(read_configuration())
    outer = FastAPI(lifespan=ai.lifespan)
    outer.mount("/ai", ai)
    async with serving(outer) as url, client_of(url) as client:
        for path in ("/ai/mcp", "/ai/mcp/", "/ai//mcp"):
            assert (await client.post(path, json=PING)).status_code == 200
        assert (await client.post("/ai/chat/completions", json=CHAT)).status_code == 200
