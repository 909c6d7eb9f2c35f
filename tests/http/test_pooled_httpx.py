"""The httpx client that tools are given goes by the rules of the one pool."""

import asyncio
from collections.abc import AsyncGenerator

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from tests.ports import silent_port
from tests.serving import serving
from tests.waiting import PATIENCE
from toolchat.errors import UpstreamError, UpstreamInvalid, UpstreamTimeout, UpstreamUnavailable
from toolchat.http.client import MAX_BODY_BYTES, OutboundHttp


async def cookie(request: Request) -> Response:
    response = PlainTextResponse(request.headers.get("cookie", "no cookie"))
    response.set_cookie("session", "secret")
    return response


async def moved(request: Request) -> Response:
    return RedirectResponse("/cookie")


async def endless(request: Request) -> Response:
    async def pieces() -> AsyncGenerator[bytes, None]:
        for _ in range(MAX_BODY_BYTES // 2**16 + 2):
            yield b"x" * 2**16

    return StreamingResponse(pieces())


async def silent(request: Request) -> Response:
    await asyncio.Event().wait()
    raise AssertionError("nothing is answered")


async def begun(request: Request) -> Response:
    async def pieces() -> AsyncGenerator[bytes, None]:
        yield b"x"
        await asyncio.Event().wait()

    return StreamingResponse(pieces())


UPSTREAM = Starlette(routes=[Route(f"/{each.__name__}", each) for each in (cookie, moved, endless, silent, begun)])


@pytest.mark.parametrize(
    ("path", "kind", "told"),
    [
        ("/moved", UpstreamInvalid, "the upstream answered with a redirect, which is never followed"),
        ("/endless", UpstreamInvalid, f"Shop sent more than {MAX_BODY_BYTES} bytes"),
        ("/silent", UpstreamTimeout, "Shop could not be reached in time"),
        ("/begun", UpstreamTimeout, "Shop could not be reached in time"),
    ],
)
async def test_errors_are_those_of_the_service(path: str, kind: type[UpstreamError], told: str) -> None:
    http = OutboundHttp()
    async with serving(UPSTREAM) as url:
        timeout = 0.2 if path in ("/silent", "/begun") else PATIENCE
        with pytest.raises(kind) as caught:
            await http.httpx.get(f"{url}{path}", extensions={"upstream": "Shop"}, timeout=timeout)
        await http.aclose()
    assert caught.value.detail == told


async def test_an_upstream_that_is_not_there_is_named_by_its_host() -> None:
    http = OutboundHttp()
    with silent_port() as port, pytest.raises(UpstreamUnavailable, match=r"127\.0\.0\.1 could not be reached"):
        await http.httpx.get(f"http://127.0.0.1:{port}/")
    await http.aclose()


async def test_cookies_are_not_stored() -> None:
    http = OutboundHttp()
    async with serving(UPSTREAM) as url:
        texts = [(await http.httpx.get(f"{url}/cookie")).text for _ in range(2)]
        await http.aclose()
    assert texts == ["no cookie", "no cookie"]


async def test_both_clients_share_the_pool() -> None:
    http = OutboundHttp()
    async with serving(UPSTREAM) as url:
        await http.httpx.get(f"{url}/cookie")
        await http.fetch("GET", f"{url}/cookie", upstream="Shop", timeout=PATIENCE)
        assert len(http._pool._connections) == 1
        await http.aclose()
