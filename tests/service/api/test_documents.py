"""What surrounds the chat, and the documentation of input."""

import re
from typing import Any

import httpx
import pytest

from tests.documented import problems_of
from tests.serving import events_of, service
from toolchat.service.api.schemas import Index, ToolModuleDescription

NINE = {
    f"/{tool}/{variant}"
    for tool in ("time", "weather", "translate")
    for variant in ("chat", "chat-tool-function", "chat-tool-method")
}
ASKED = {path: {"query": "北京现在几点？"} for path in ("/chat", "/chat/stream", "/todo/chat")}
OF_NOBODY = (
    *("/chat/{sessionId}", "/approvals/{identifier}", "/.well-known/oauth-protected-resource/mcp"),
    *("/v1/responses/{identifier}", "/v1/responses/{identifier}/input_items", "/questions/{identifier}"),
    *("/v1/conversations/{identifier}", "/v1/conversations/{identifier}/items"),
    *("/v1/conversations/{identifier}/items/{item}", "/person", "/sessions/{sessionId}"),
)
"""Where what nobody has begun is not found, and how to authenticate where nobody needs to."""
FOREIGN = re.compile("/v1/|/mcp|/ai-sdk/|/ag-ui")
"""Where the protocols of others have their paths, and errors in their own words."""


async def test_the_index_lists_the_endpoints(offline: httpx.AsyncClient) -> None:
    index = Index.model_validate((await offline.get("/")).json())
    document = (await offline.get("/openapi.json")).json()
    for path in index.endpoints.keys() - NINE:
        if "get" in document["paths"][path]:
            answer = await offline.get(
                path.replace("{sessionId}", "42").replace("{model}", "toolchat"), params=ASKED.get(path)
            )
            assert answer.status_code == (404 if path in OF_NOBODY else 200), path
    assert set(index.endpoints) >= NINE
    assert index.chat_model == "offline"


async def test_tools_lists_definitions_and_the_reasons_of_those_that_are_missing(offline: httpx.AsyncClient) -> None:
    listed = {each["name"]: each for each in (await offline.get("/tools")).json()}
    for each in listed.values():
        ToolModuleDescription.model_validate(each)
    assert [tool["name"] for tool in listed["time"]["tools"]] == ["getCityTimeFunction", "getCityTimeMethod"]
    assert listed["weather"]["registered"] is False
    assert listed["weather"]["reason"].startswith("not configured: set WEATHER_API_KEY or WEATHER_PROVIDER=open_meteo")


@pytest.mark.usefixtures("tmp_path")  # where its file is
async def test_every_page_of_the_service_answers_with_the_default_state_store() -> None:
    async with service(STATE_URL="") as client:
        ready = (await client.get("/health/ready")).json()
        assert ready["state_store"] == {"kind": "sqlite", "available": True}
        for path in ("/", "/health/live", "/tools", "/metrics", "/openapi.json", "/docs", "/playground/", "/v1/models"):
            assert (await client.get(path)).status_code == 200
        answer = await client.get("/chat", params={"userInput": "What time is it in Paris?", "sessionId": "a"})
        assert answer.status_code == 200
        assert len((await client.get("/chat/a")).json()["messages"]) == 2


async def test_openapi_documents_every_status_and_form_of_the_nine_endpoints(offline: httpx.AsyncClient) -> None:
    document = (await offline.get("/openapi.json")).json()
    assert set(document["paths"]) >= NINE
    for path in NINE:
        for method, more in (("get", set()), ("post", {408, 413, 415})):
            operation = document["paths"][path][method]
            content = operation["responses"]["200"]["content"]
            assert list(content) == ["application/json", "text/plain", "text/event-stream"]
            asked = {400, 401, 403, 406, 414, 421, 422, 429, 431, 500, 502, 503, 504}
            assert set(problems_of(operation)) == asked | more
        (query,) = document["paths"][path]["get"]["parameters"]
        assert len(query["examples"]) >= 3
    references = set(re.findall(r"#/components/schemas/(\w+)", str(document)))
    assert references <= set(document["components"]["schemas"])


async def test_openapi_documents_the_one_form_of_the_streaming_route(offline: httpx.AsyncClient) -> None:
    # Swagger UI asks for the first form that is listed, and would else be refused with 406.
    paths = (await offline.get("/openapi.json")).json()["paths"]
    for method in ("get", "post"):
        assert list(paths["/chat/stream"][method]["responses"]["200"]["content"]) == ["text/event-stream"]


async def test_every_operation_lists_its_problems_once_with_a_link(offline: httpx.AsyncClient) -> None:
    # One block for each operation, each kind told in plain words on the page behind the link.
    document = (await offline.get("/openapi.json")).json()
    page = await offline.get("/docs/errors.md")
    explained = set(re.findall(r"^(\d{3})  ([a-z-]+) +(?:yes|no) +[A-Z][^`\n]+\.$", page.text, re.MULTILINE))
    for path, methods in document["paths"].items():
        for operation in methods.values():
            assert [each for each in operation["responses"] if each.startswith(("4", "5"))] == []
            if FOREIGN.match(path):
                continue
            assert operation["responses"]["default"]["description"].endswith(": [docs/errors.md](docs/errors.md)")
            listed = {(str(status), code) for status, codes in problems_of(operation).items() for code in codes}
            assert listed <= explained
            assert {("401", "unauthorized"), ("403", "forbidden"), ("421", "misdirected")} <= listed
    assert problems_of(document["paths"]["/chat"]["get"])[403] == ["cross-site", "forbidden"]


@pytest.mark.parametrize("query", ["?view=conversation", "?view=conversation&q=%E4%BD%A0%20a%2Bb&x", ""])
async def test_the_redirect_of_the_page_keeps_its_query(query: str, offline: httpx.AsyncClient) -> None:
    bare = await offline.get(f"/playground{query}")
    assert (bare.status_code, bare.headers["location"]) == (307, f"playground/{query}")
    assert (await offline.get(f"/playground{query}", follow_redirects=True)).status_code == 200


async def test_every_answer_that_is_not_2xx_has_a_status_and_a_code_that_openapi_lists(
    offline: httpx.AsyncClient,
) -> None:
    document = (await offline.get("/openapi.json")).json()
    asked = [
        (method, path, query)
        for path, methods in sorted(document["paths"].items())
        for method in ("get", "post")
        if method in methods and not FOREIGN.match(path)
        for query in ("?query=%20", "?query=%ff", "?query=" + "a" * 5000, "?query=" + "a" * 60_001)
    ]
    for method, path, query in asked:
        answer = await offline.request(method, path + query)
        if not answer.is_success:
            listed = problems_of(document["paths"][path][method])
            assert answer.json()["code"] in listed[answer.status_code], (method, path, query)


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


async def test_a_stream_is_documented_as_the_events_that_come(offline: httpx.AsyncClient) -> None:
    for path, method, operation in await operations(offline):
        for status, response in operation["responses"].items():
            schema = response.get("content", {}).get("text/event-stream", {}).get("schema", {"type": "object"})
            assert schema["type"] == "object", (path, method, status)
    stream = await offline.get("/chat/stream", params={"userInput": "hello"})
    assert [each.name for each in events_of(stream.text.partition("\n")[2])][-1] == "done"
