"""A question is answered alike past the framework's routing and through it."""

from typing import Any

import httpx
import pytest

from tests.serving import events_of

PATHS = ("/time/chat", "/time/chat-tool-function", "/time/chat-tool-method")
JSON = {"Accept": "application/json"}
MEASURED = ("duration_ms", "request_id")


async def _both(
    client: httpx.AsyncClient, path: str, query: str, **headers: str
) -> tuple[httpx.Response, httpx.Response]:
    """The same question by the shortcut and, for a parameter that means nothing, by FastAPI's route."""
    return (
        await client.get(path, params={"query": query}, headers=headers),
        await client.get(path, params={"query": query, "unknown": ""}, headers=headers),
    )


def _without_times(document: dict[str, Any]) -> dict[str, Any]:
    calls = [{**call, "duration_ms": 0, "result": ""} for call in document["tool_calls"]]
    kept = {name: value for name, value in document.items() if name not in MEASURED}
    return kept | {"tool_calls": calls, "answer": ""}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("query", ["东京现在几点？", "What time is it in Paris?", "", "a+b %41 & c=d;e#f", "x" * 4000])
async def test_both_ways_give_the_same_answer_and_headers(path: str, query: str, offline: httpx.AsyncClient) -> None:
    short, long = await _both(offline, path, query, **JSON)
    assert (short.status_code, long.status_code) == (200, 200)
    assert _without_times(short.json()) == _without_times(long.json())
    changing = ("x-request-id", "content-length", "date")
    assert [(n, v) for n, v in short.headers.multi_items() if n not in changing] == [
        (n, v) for n, v in long.headers.multi_items() if n not in changing
    ]


async def test_both_ways_stream_the_same_events(offline: httpx.AsyncClient) -> None:
    short, long = await _both(offline, PATHS[1], "北京现在几点？", Accept="text/event-stream")
    assert [event.name for event in events_of(short.text)] == [event.name for event in events_of(long.text)]
    assert events_of(short.text)[-1].name == "done"


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
        ("Query=a", 200),
        ("%71uery=a", 200),
    ],
)
async def test_what_is_unusual_about_a_question_is_answered_as_ever(
    query_string: str, status: int, offline: httpx.AsyncClient
) -> None:
    answer = await offline.get(f"{PATHS[1]}?{query_string}")
    assert answer.status_code == status
    if status != 200:
        assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(("method", "status"), [("HEAD", 405), ("POST", 405), ("OPTIONS", 405)])
async def test_other_methods_find_the_documented_route(method: str, status: int, offline: httpx.AsyncClient) -> None:
    answer = await offline.request(method, PATHS[0])
    assert (answer.status_code, answer.headers["allow"]) == (status, "GET")
