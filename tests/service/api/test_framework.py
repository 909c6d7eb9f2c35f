"""What people who know FastAPI expect of an application, and get."""

import gc
import re
from collections.abc import Sequence

import httpx
import pytest
from fastapi import HTTPException
from fastapi.testclient import TestClient

from tests.application import create_app
from tests.service.api.assembled import assembled
from tests.serving import events_of, service
from toolchat.chat.advisors.base import Advisor, AdvisorChain
from toolchat.chat.request import ChatRequest, Emit
from toolchat.models.base import ChatResponse, TextDelta
from toolchat.service.api.service import ServiceState, running_service

EVENTS = {"Accept": "text/event-stream"}


class Paid(Advisor):
    """Wants to be paid, at once or after the first word."""

    def __init__(self, after: Sequence[str] = ()) -> None:
        self._after = after

    async def advise(self, request: ChatRequest, chain: AdvisorChain, emit: Emit) -> ChatResponse:
        for text in self._after:
            await emit(TextDelta(text))
        raise HTTPException(402, "five euros")


@pytest.mark.parametrize("path", ["/time/chat?query=hi", "/chat?userInput=hi"])
@pytest.mark.parametrize("headers", [{}, EVENTS])
async def test_an_http_exception_of_an_advisor_is_the_answer_on_every_route(path: str, headers: dict[str, str]) -> None:
    app = create_app()
    async with assembled(app) as client:
        advise(app.state.service, Paid())
        answer = await client.get(path, headers=headers)
    assert (answer.status_code, answer.json()["detail"]) == (402, "five euros")


async def test_an_http_exception_in_the_middle_of_a_stream_is_its_last_event() -> None:
    app = create_app()
    async with assembled(app) as client:
        advise(app.state.service, Paid(after=["Well, "]))
        answer = await client.get("/time/chat", headers=EVENTS)
    events = events_of(answer.text)
    assert [each.name for each in events] == ["delta", "error"]
    assert (events[-1].data["status"], events[-1].data["detail"]) == (402, "five euros")


def advise(state: ServiceState, advisor: Advisor) -> None:
    """Give the running service one more advisor."""
    from dataclasses import replace

    chat = replace(state.chat, advisors=(*state.chat.advisors, advisor))
    object.__setattr__(state, "chat", chat)


def test_a_test_client_runs_the_whole_service() -> None:
    with TestClient(create_app()) as client:
        answer = client.get("/time/chat-tool-function", params={"query": "What time is it in Paris?"})
    assert (answer.status_code, "Europe/Paris" in answer.text) == (200, True)


@pytest.mark.parametrize("path", ["/time/chat", "/chat?userInput=hi", "/tools"])
def test_without_its_lifespan_the_application_explains_how_to_start_it(path: str) -> None:
    answer = TestClient(create_app()).get(path)
    assert answer.status_code == 500
    assert answer.json()["detail"] == "the application is not started; in a test, use: with TestClient(app) as client"


def test_a_test_can_override_the_service_of_a_route() -> None:
    app = create_app()
    with TestClient(app) as client:

        class Empty:
            chat, tools = app.state.service.chat, type("NoTools", (), {"entries": {}})

        app.dependency_overrides[running_service] = Empty
        assert client.get("/tools").json() == []


def test_an_application_leaves_the_collector_of_the_process_alone() -> None:
    frozen, before = gc.get_freeze_count(), (gc.get_threshold(), gc.isenabled())
    with TestClient(create_app()):
        during = gc.get_threshold(), gc.isenabled()
        # The tests froze their own objects. Some may end meanwhile; an application that froze or unfroze would add or
        # take away hundreds of thousands.
        assert frozen / 2 < gc.get_freeze_count() <= frozen
    assert during == before


def test_every_operation_is_named_by_its_method_and_path() -> None:
    paths = create_app().openapi()["paths"]
    named = {
        (method, path): operation["operationId"]
        for path, operations in paths.items()
        for method, operation in operations.items()
    }
    assert named["get", "/time/chat-tool-function"] == "get_time_chat_tool_function"
    assert named["post", "/time/chat-tool-function"] == "post_time_chat_tool_function"
    assert named["delete", "/chat/{sessionId}"] == "delete_chat_by_session_id"
    assert len(set(named.values())) == len(named)
    assert [each for each in named.values() if not re.fullmatch("[a-z0-9_]+", each)] == []


def test_servers_and_contact_of_the_application_are_documented() -> None:
    app = create_app()
    app.servers = [{"url": "https://ask.example"}]
    app.contact = {"name": "Somebody"}
    document = app.openapi()
    assert (document["servers"], document["info"]["contact"]) == ([{"url": "https://ask.example"}], app.contact)


async def test_below_a_path_prefix_everything_is_found_and_nothing_is_logged_in_plain(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("DEBUG", "toolchat.request")
    async with service(SERVER_ROOT_PATH="/ai") as client:  # a proxy has stripped the prefix
        assert (await client.get("/time/chat")).status_code == 200
        assert (await client.get("/chat/secret-session")).status_code == 404
        assert (await client.get("/health/live")).status_code == 200
        pages = [(await client.get(path)).text for path in ("/docs", "/docs/page/page.js", "/playground/")]
        document = (await client.get("/openapi.json")).json()
    # What a page asks for lies beside it, so that it is found below whatever a proxy puts above.
    assert not [page for page in pages if re.search(r"""(?:src|href|url)[=:] ?["']/""", page)]
    assert document["servers"] == [{"url": "/ai"}]
    begun = [each for each in caplog.records if "request started" in each.getMessage()]
    assert [vars(each)["path"][:5] for each in begun[:2]] == ["/time", "/chat"]
    assert "secret-session" not in caplog.text
    assert [each.levelname for each in begun if vars(each)["path"] == "/health/live"] == ["DEBUG"]


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/tools",
        "/health/live",
        "/health/ready",
        "/metrics",
        "/docs",
        "/docs/errors.md",
        "/openapi.json",
        "/playground/",
    ],
)
async def test_head_answers_as_get_does_without_a_body(path: str, client: httpx.AsyncClient) -> None:
    head, get = await client.head(path), await client.get(path)
    assert (head.status_code, head.headers["content-type"]) == (get.status_code, get.headers["content-type"])
    assert head.content == b""
