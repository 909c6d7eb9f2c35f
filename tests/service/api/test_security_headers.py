"""What every answer tells a browser that it must not do with it."""

import asyncio
from collections.abc import AsyncGenerator

import httpx
import pytest

from tests.serving import service
from toolchat.service.access.keys import digest_of
from toolchat.service.api.guard import SECURITY_HEADERS

NAMES = [name.decode() for name, _ in SECURITY_HEADERS if name != b"cache-control"]
NOTHING = "default-src 'none'; frame-ancestors 'none'"
ORIGIN = "https://chat.example.org"
PREFLIGHT = {"Origin": ORIGIN, "Access-Control-Request-Method": "GET"}
PAGES = ("/playground/", "/playground/playground.js", "/docs", "/docs/page/page.js")
ANSWERS = [
    *(("GET", path, {}, 200) for path in ("/", "/tools", "/metrics", "/health/live", "/openapi.json", "/time/chat")),
    *(("GET", path, {}, 200) for path in ("/docs/errors.md", "/chat/stream?query=hi")),
    ("HEAD", "/", {}, 200),
    ("OPTIONS", "/chat", PREFLIGHT, 200),
    ("OPTIONS", "/chat", {**PREFLIGHT, "Origin": "https://evil.example"}, 400),
    ("GET", "/playground", {}, 307),
    ("GET", "/time/chat?query=%ff", {}, 400),
    ("GET", "/tools", {"X-API-Key": "wrong"}, 401),
    ("GET", "/chat?query=hi", {"Sec-Fetch-Site": "cross-site"}, 403),
    ("GET", "/nothing", {}, 404),
    ("GET", "/playground/nothing", {}, 404),
    ("PUT", "/chat", {}, 405),
    ("GET", "/tools", {"Host": "evil.example"}, 421),
    ("GET", "/chat?query=", {}, 422),
]
UPGRADE = (
    b"GET /chat HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)


@pytest.fixture(scope="module")
async def guarded() -> AsyncGenerator[httpx.AsyncClient, None]:
    variables = {"API_KEYS": f"alice={digest_of('right')}", "ALLOW_ANONYMOUS": "true", "CORS_ORIGINS": ORIGIN}
    variables["OPEN_PATHS"] = "/metrics"
    async with service(**variables) as client:
        yield client


@pytest.mark.parametrize(("method", "path", "headers", "status"), ANSWERS, ids=lambda each: str(each)[:40])
async def test_an_answer_that_is_no_page_may_load_nothing_and_be_framed_nowhere(
    method: str, path: str, headers: dict[str, str], status: int, guarded: httpx.AsyncClient
) -> None:
    answer = await guarded.request(method, path, headers=headers)
    assert answer.status_code == status
    assert [answer.headers.get_list(name) for name in NAMES] == [["nosniff"], ["no-referrer"], [NOTHING]]


@pytest.mark.parametrize("path", PAGES)
async def test_a_page_can_load_its_own_files_and_nothing_inline(path: str, offline: httpx.AsyncClient) -> None:
    # Also where the browser has it already: it takes the headers of a 304 for the page's own.
    answer = await offline.get(path)
    again = await offline.get(path, headers={"If-None-Match": answer.headers["etag"]})
    assert [answer.status_code, again.status_code] == [200, 304]
    for each in (answer, again):
        nosniff, referrer, (policy,) = (each.headers.get_list(name) for name in NAMES)
        assert [nosniff, referrer] == [["nosniff"], ["no-referrer"]]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'")
        assert policy.endswith("; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
        assert "unsafe" not in policy


async def test_requests_rejected_before_the_application_have_them_too(offline: httpx.AsyncClient) -> None:
    reader, writer = await asyncio.open_connection(offline.base_url.host, offline.base_url.port)
    writer.write(UPGRADE)
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    writer.close()
    await writer.wait_closed()
    assert head.startswith("http/1.1 4")
    assert [head.count(f"\r\n{name}: ") for name in NAMES] == [1, 1, 1]
