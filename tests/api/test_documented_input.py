"""What the OpenAPI document says of input is what is enforced, and what it says of streams is what comes."""

import re
from typing import Any

import httpx
import pytest

from tests.serving import events_of

TEXTS = ["", "hello", "今天几点", " a ", " ", "\t\r\n", "\u3000", "\x85", "\x1c", "\x00", "a\x00b", "\x85a", "a\nb"]
IDS = ["", "a", "A.b_c-1", "a" * 64, "a" * 65, "chat", "stream", "chats", "a b", "a/b", "-a", ".a", "é", "a\n", "a\x00"]


async def operations(client: httpx.AsyncClient) -> list[tuple[str, str, dict[str, Any]]]:
    paths: dict[str, Any] = (await client.get("/openapi.json")).json()["paths"]
    return [(path, method, each) for path, methods in paths.items() for method, each in methods.items()]


def schemas(operation: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {each["name"]: each["schema"] for each in operation.get("parameters", ())}


def allows(schema: dict[str, Any], value: str) -> bool:
    """Whether the patterns of a schema allow a text, as JavaScript, and so JSON Schema, means them."""
    wanted, unwanted = schema.get("pattern", ""), schema.get("not", {}).get("pattern", "(?!)")
    found = [re.search(each.replace("$", r"\Z"), value) for each in (wanted, unwanted)]
    return bool(found[0]) and not found[1]


@pytest.mark.parametrize(
    ("path", "name", "values", "beside"),
    [
        ("/todo/chat", "query", TEXTS, {}),
        ("/chat", "userInput", TEXTS[1:], {}),  # here there must be a question
        ("/chat", "sessionId", IDS, {"userInput": "hello"}),
    ],
)
async def test_a_pattern_in_a_url_is_the_one_that_is_enforced(
    path: str, name: str, values: list[str], beside: dict[str, str], offline: httpx.AsyncClient
) -> None:
    documented = next(each for place, method, each in await operations(offline) if (place, method) == (path, "get"))
    schema = schemas(documented)[name]
    for value in values:
        answer = await offline.get(path, params={**beside, name: value})
        assert (answer.status_code == 200) == allows(schema, value), repr(value)


async def test_every_question_and_every_session_id_has_its_pattern(offline: httpx.AsyncClient) -> None:
    for path, method, operation in await operations(offline):
        for name, schema in schemas(operation).items():
            if name in ("query", "userInput", "sessionId", "X-Session-ID"):
                assert not allows(schema, "\x00"), (path, method, name)


@pytest.mark.parametrize(
    "body",
    [{}, {"userInput": "a", "query": "b"}, {"userInput": ""}, {"sessionId": "chat", "userInput": "a"}],
    ids=["nothing", "two questions", "empty", "reserved"],
)
async def test_a_body_that_is_refused_is_one_that_the_schema_does_not_allow(
    body: dict[str, str], offline: httpx.AsyncClient
) -> None:
    assert (await offline.post("/chat", json=body)).status_code == 422


async def test_a_stream_is_documented_as_the_events_that_come(offline: httpx.AsyncClient) -> None:
    for path, method, operation in await operations(offline):
        for status, response in operation["responses"].items():
            schema = response.get("content", {}).get("text/event-stream", {}).get("schema", {"type": "object"})
            assert schema["type"] == "object", (path, method, status)
    stream = await offline.get("/chat/stream", params={"userInput": "hello"})
    assert [each.name for each in events_of(stream.text.partition("\n")[2])][-1] == "done"
