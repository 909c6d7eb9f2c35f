"""A folder's own routes follow the conventions that FastAPI's and dishka's users know."""

import pytest
from fastapi.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from tests.composition.test_folder_parts import package, serving_folders, with_folders

__all__ = ["package"]


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STOCKS_API_KEY", "k")


async def test_a_route_receives_objects_from_the_container(package: str) -> None:
    async with serving_folders(package) as client:
        assert (await client.get("/stocks/market")).json() == "XSHG"


def test_a_websocket_route_receives_objects_from_the_container(package: str) -> None:
    with TestClient(with_folders(package)) as client, client.websocket_connect("/stocks/ticker") as socket:
        assert socket.receive_text() == "XSHG"


def test_a_websocket_route_of_a_folder_that_is_not_registered_is_refused(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("STOCKS_API_KEY")
    with (
        TestClient(with_folders(package)) as client,
        pytest.raises(WebSocketDisconnect),
        client.websocket_connect("/stocks/ticker"),
    ):
        pass


@pytest.mark.parametrize(
    ("path", "status", "code", "detail"),
    [
        ("/stocks/refused/404?detail=no such city: Pariss", 404, "not-found", "no such city: Pariss"),
        ("/stocks/refused/404", 404, "not-found", "GET /stocks/refused/404: not found; GET / lists all routes"),
        ("/stocks/refused/499?detail=gone", 499, "status-499", "gone"),
        ("/stocks/refused/402?detail=pay first", 402, "payment-required", "pay first"),
    ],
)
async def test_an_http_exception_keeps_its_status_and_its_detail(
    path: str, status: int, code: str, detail: str, package: str
) -> None:
    async with serving_folders(package) as client:
        answer = await client.get(path)
    assert answer.headers["content-type"] == "application/problem+json"
    assert (answer.status_code, answer.json()["code"], answer.json()["detail"]) == (status, code, detail)
