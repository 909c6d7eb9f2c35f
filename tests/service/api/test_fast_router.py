"""Every request comes in by one door: a guard put up the framework's way guards the short way, too."""

from collections.abc import AsyncGenerator
from typing import Any

import httpx
import pytest
from fastapi import APIRouter, Depends, HTTPException, Request
from fastapi.routing import iter_route_contexts
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Match

from tests.application import create_app, read_configuration
from tests.service.api.assembled import assembled
from tests.serving import events_of
from toolchat.service.api.fast_router import QuestionParameter
from toolchat.service.api.module_routes import add_module_routes

PATHS = ("/time/chat", "/time/chat-tool-function", "/time/chat-tool-method")
JSON = {"Accept": "application/json"}
MEASURED = ("duration_ms", "request_id")


def deny() -> None:
    raise HTTPException(401, "who are you?")


def let_pass() -> None:
    """A guard that is content with everybody: with it a question goes the framework's way."""


@pytest.fixture(scope="module")
async def short() -> AsyncGenerator[httpx.AsyncClient, None]:
    """The service as it is: questions take the short way."""
    async with assembled(create_app()) as client:
        yield client


@pytest.fixture(scope="module")
async def long() -> AsyncGenerator[httpx.AsyncClient, None]:
    """The service behind a guard that is content with everybody: questions take the framework's way."""
    async with assembled(create_app(dependencies=[Depends(let_pass)])) as client:
        yield client


@pytest.fixture(scope="module")
async def closed() -> AsyncGenerator[httpx.AsyncClient, None]:
    """The service behind a guard that lets nobody in."""
    async with assembled(create_app(dependencies=[Depends(deny)])) as client:
        yield client


@pytest.mark.parametrize("query", ["", "?query=hi", "?unknown=1", "?query=hi&x=1"])
async def test_a_guard_of_the_application_guards_every_documented_path(
    query: str, short: httpx.AsyncClient, closed: httpx.AsyncClient
) -> None:
    document = (await short.get("/openapi.json")).json()
    refused = {
        (method, path): (await closed.request(method, path.replace("{", "").replace("}", "") + query)).status_code
        for path, operations in document["paths"].items()
        for method in operations
    }
    assert len(refused) > 25
    assert {status for status in refused.values() if status != 401} == set()


async def test_a_guard_of_an_included_router_guards_its_questions() -> None:
    router = APIRouter()
    configuration = read_configuration()
    for configured in configuration.modules:
        add_module_routes(router, configured.module)
    app = create_app()
    app.router.routes[:] = [each for each in app.router.routes if getattr(each, "path", "") not in PATHS]
    app.include_router(router, dependencies=[Depends(deny)])
    async with assembled(app) as client:
        for path in PATHS:
            assert (await client.get(f"{path}?query=hi")).status_code == 401
        assert (await client.get("/health/live")).status_code == 200


async def test_a_route_that_comes_first_keeps_its_path() -> None:
    app = create_app()

    async def other() -> PlainTextResponse:
        return PlainTextResponse("another route")

    app.add_api_route("/time/{anything}", other)
    app.router.routes.insert(0, app.router.routes.pop())
    async with assembled(app) as client:
        assert (await client.get("/time/chat?query=hi")).text == "another route"


def test_the_index_finds_what_the_framework_would_find() -> None:
    app = create_app()
    index, *routes = app.router.routes
    for path in (each.path or "" for each in iter_route_contexts(routes)):
        for method in ("GET", "HEAD", "POST", "DELETE"):
            scope = {"type": "http", "method": method, "path": path.replace("{", "").replace("}", ""), "root_path": ""}
            asked = (each for each in routes if each.matches(dict(scope, headers=[]))[0] is Match.FULL)
            matching = next(asked, None)
            match, child_scope = index.matches(dict(scope, headers=[]))
            assert (match is Match.FULL) is (matching is not None), scope
            assert matching is None or matching in child_scope.values(), scope


async def test_only_a_question_route_without_dependencies_is_called_directly(
    short: httpx.AsyncClient, long: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    ways: list[bool] = []

    async def note(self: QuestionParameter, request: Request) -> str:
        ways.append("fastapi_function_astack" in request.scope)
        return self.default

    monkeypatch.setattr(QuestionParameter, "read", note)
    for client in (short, long):
        await client.get(PATHS[0])
    assert ways == [False, True]


def _without_times(document: dict[str, Any]) -> dict[str, Any]:
    calls = [{**call, "duration_ms": 0, "result": "", "data": ""} for call in document["tool_calls"]]
    kept = {name: value for name, value in document.items() if name not in MEASURED}
    return kept | {"tool_calls": calls, "answer": ""}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("query", ["东京现在几点？", "What time is it in Paris?", "", "a+b %41 & c=d;e#f", "x" * 4000])
@pytest.mark.parametrize(("method", "place"), [("GET", "params"), ("POST", "json")])
async def test_both_ways_give_the_same_answer_and_headers(
    path: str, query: str, method: str, place: str, short: httpx.AsyncClient, long: httpx.AsyncClient
) -> None:
    given: dict[str, Any] = {place: {"query": query}, "headers": JSON}
    one, other = [await each.request(method, path, **given) for each in (short, long)]
    assert (one.status_code, other.status_code) == (200, 200)
    assert _without_times(one.json()) == _without_times(other.json())
    changing = ("x-request-id", "x-toolchat-overhead-ms", "content-length", "date")
    assert [(n, v) for n, v in one.headers.multi_items() if n not in changing] == [
        (n, v) for n, v in other.headers.multi_items() if n not in changing
    ]


async def test_both_ways_stream_the_same_events(short: httpx.AsyncClient, long: httpx.AsyncClient) -> None:
    path, accept = f"{PATHS[1]}?query=北京现在几点？", {"Accept": "text/event-stream"}
    one, other = [events_of((await each.get(path, headers=accept)).text) for each in (short, long)]
    assert [event.name for event in one] == [event.name for event in other]
    assert one[-1].name == "done"


@pytest.mark.parametrize(
    ("query_string", "status"),
    [
        ("query=%20%20", 422),
        ("query=" + "x" * 4001, 422),
        ("query=a&query=b", 422),
        ("query=%FF", 400),
        ("query=%00", 400),
        ("query", 200),
        ("query=", 200),
        ("", 200),
        ("Query=a", 422),
        ("%71uery=a", 200),
        ("query=a&unknown=b", 422),
    ],
)
async def test_unusual_requests_get_the_same_answer_on_both_ways(
    query_string: str, status: int, short: httpx.AsyncClient, long: httpx.AsyncClient
) -> None:
    answers = [await each.get(f"{PATHS[1]}?{query_string}") for each in (short, long)]
    assert [each.status_code for each in answers] == [status, status]
    if status != 200:
        assert {each.headers["content-type"] for each in answers} == {"application/problem+json"}
        assert answers[0].json()["detail"] == answers[1].json()["detail"]


class PaymentNeeded(Exception):
    """An exception that only the application knows."""


async def on_payment(request: Request, error: Exception) -> Response:
    return JSONResponse({"pay": str(error)}, 402)


async def test_an_exception_handler_of_the_application_answers_for_questions_too() -> None:
    app = create_app()
    app.add_exception_handler(PaymentNeeded, on_payment)

    class NoService:
        def __getattr__(self, name: str) -> Any:
            raise PaymentNeeded("five euros")

    async with assembled(app) as client:
        tools = app.state.service.tools
        object.__setattr__(app.state.service, "tools", NoService())
        answer = await client.get(PATHS[1])
        object.__setattr__(app.state.service, "tools", tools)
    assert (answer.status_code, answer.json()) == (402, {"pay": "five euros"})
