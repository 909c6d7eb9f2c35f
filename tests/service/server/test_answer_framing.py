"""How answers are framed on a connection, whoever makes them: their heads, their ends, and what cannot be sent."""

from collections.abc import AsyncGenerator

import pytest
from fastapi import FastAPI, Request
from starlette.responses import Response, StreamingResponse

from tests.application import create_app
from tests.service.server.raw_client import RawClient
from tests.serving import service, serving
from toolchat.service.settings.base import read_settings
from toolchat.service.settings.service_settings import Settings


async def _own(request: Request) -> Response:
    made = request.path_params["kind"]
    if made == "pieces":
        return StreamingResponse(iter([b"one", b"", b"three"]), media_type="text/plain")
    if made == "nothing":
        return Response(status_code=204)
    headers = {"injected": {"X-Own": "a\r\nX-Other: b"}, "too-long": {"Content-Length": "3"}}
    return Response(b"hello", headers=headers.get(made, {"X-Own": "a\tb"}))


@pytest.fixture(scope="module")
async def url() -> AsyncGenerator[str, None]:
    app: FastAPI = create_app()
    app.add_route("/own/{kind}", _own, methods=["GET", "HEAD"])
    async with serving(app, read_settings(Settings)) as url:
        yield url


async def answered(url: str, kind: str, method: str = "GET", version: str = "1.1") -> tuple[str, bytes]:
    """Head and body of an answer, after which the connection ends."""
    async with RawClient(url) as client:
        await client.send(
            f"{method} /own/{kind} HTTP/{version}\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()
        )
        head, _, body = (await client.read_to_end()).partition(b"\r\n\r\n")
    return head.decode().lower(), body


async def test_a_header_that_would_begin_another_one_is_not_sent(url: str) -> None:
    assert await answered(url, "injected") == ("", b"")


async def test_a_tab_within_a_header_is_sent_as_it_is(url: str) -> None:
    assert "\r\nx-own: a\tb\r\n" in (await answered(url, "plain"))[0]


async def test_a_body_longer_than_announced_is_cut_off_before_it_could_pass_for_the_next_answer(url: str) -> None:
    head, body = await answered(url, "too-long")
    assert "\r\ncontent-length: 3" in head
    assert body == b""


async def test_pieces_of_unknown_length_are_chunks_and_an_empty_one_is_not_their_end(url: str) -> None:
    head, body = await answered(url, "pieces")
    assert "\r\ntransfer-encoding: chunked" in head
    assert body == b"3\r\none\r\n5\r\nthree\r\n0\r\n\r\n"


@pytest.mark.parametrize(("kind", "method"), [("nothing", "GET"), ("pieces", "HEAD"), ("plain", "HEAD")])
async def test_an_answer_without_a_body_ends_with_its_head(kind: str, method: str, url: str) -> None:
    head, body = await answered(url, kind, method)
    assert body == b""
    assert "transfer-encoding" not in head


async def test_a_client_without_keep_alive_receives_connection_close(url: str) -> None:
    head, body = await answered(url, "plain", version="1.0")
    assert "\r\nconnection: close" in head
    assert body == b"hello"


async def test_a_connection_serves_further_requests_until_nothing_came_for_as_long_as_it_may_be_idle() -> None:
    async with service(SERVER_IDLE_TIMEOUT="0.5") as client, RawClient(str(client.base_url)) as raw:
        for _ in range(2):
            await raw.ask("/health/live", "application/json")
            await raw.read_until(b"}")
            raw.received.clear()
        assert await raw.read_to_end() == b""


def test_connections_are_kept_for_longer_than_balancers_keep_them_so_that_none_asks_on_one_that_closes() -> None:
    # Amazon's and nginx's keep idle connections for 60 seconds unless they are told otherwise.
    assert read_settings(Settings).server_idle_timeout > 60
