"""What surrounds the chat: index, health, tools, documentation, OpenAPI."""

import re

import httpx
import pytest

from app.api.problems import Problem
from app.api.schemas import Health, Index, ToolModuleDescription
from tests.serving import service

NINE = {
    f"/{tool}/{variant}"
    for tool in ("time", "weather", "translate")
    for variant in ("chat", "chat-tool-function", "chat-tool-method")
}
ASKED = {path: {"query": "北京现在几点？"} for path in ("/chat", "/chat/stream", "/todo/chat")}
KEYS = {"WEATHER_API_KEY": "w", "BAIDU_TRANSLATE_APP_ID": "a", "BAIDU_TRANSLATE_SECRET_KEY": "s"}


async def test_the_index_says_what_there_is(offline: httpx.AsyncClient) -> None:
    index = Index.model_validate((await offline.get("/")).json())
    document = (await offline.get("/openapi.json")).json()
    for path in index.endpoints.keys() - NINE:
        if "get" in document["paths"][path]:
            answer = await offline.get(path.replace("{sessionId}", "42"), params=ASKED.get(path))
            assert answer.status_code == (404 if path == "/chat/{sessionId}" else 200), path
    assert set(index.endpoints) >= NINE
    assert index.endpoints["/chat/{sessionId}"] == "GET: Show a conversation; DELETE: Forget a conversation"
    assert index.chat_model == "offline"


async def test_tools_lists_definitions_and_the_reasons_of_those_that_are_missing(offline: httpx.AsyncClient) -> None:
    listed = {each["name"]: each for each in (await offline.get("/tools")).json()}
    for each in listed.values():
        ToolModuleDescription.model_validate(each)
    assert [tool["name"] for tool in listed["time"]["tools"]] == ["getCityTimeFunction", "getCityTimeMethod"]
    assert listed["weather"]["registered"] is False
    assert listed["weather"]["reason"] == "not configured: set WEATHER_API_KEY"


async def test_with_keys_every_tool_of_the_documents_is_there() -> None:
    async with service(**KEYS) as client:
        listed = (await client.get("/tools")).json()
        ready = Health.model_validate((await client.get("/health/ready")).json())
    names = {tool["name"]: tool["input_schema"] for each in listed for tool in each["tools"]}
    assert {name: set(schema["properties"]) for name, schema in names.items()} == {
        "getCityTimeFunction": {"timeZoneId"},
        "getCityTimeMethod": {"timeZoneId"},
        "getWeatherFunction": {"city", "days"},
        "getWeatherServiceMethod": {"city", "days"},
        "baiduTranslateFunction": {"q", "from", "to"},
        "baiduTranslateMethod": {"q", "from", "to"},
        "todoUpdate": {"items"},
        "todoRead": set(),
    }
    assert all(schema["additionalProperties"] is False for schema in names.values())
    registered = ("time", "weather", "baidu_translate", "examples", "alarms", "todo")
    assert ready.tools == dict.fromkeys(registered, True)


async def test_liveness_and_readiness_answer(offline: httpx.AsyncClient) -> None:
    assert (await offline.get("/health/live")).json() == {"status": "ok"}
    assert (await offline.get("/health/ready")).json()["chat_model"] == "offline"


async def test_openapi_documents_every_status_and_form_of_the_nine_endpoints(offline: httpx.AsyncClient) -> None:
    document = (await offline.get("/openapi.json")).json()
    assert set(document["paths"]) >= NINE
    for path in NINE:
        operation = document["paths"][path]["get"]
        assert list(operation["responses"]["200"]["content"]) == ["application/json", "text/plain", "text/event-stream"]
        assert set(operation["responses"]) == {"200", "400", "406", "414", "422", "500", "502", "503", "504"}
        for status in set(operation["responses"]) - {"200"}:
            assert list(operation["responses"][status]["content"]) == ["application/problem+json"]
        (query,) = operation["parameters"]
        assert re.search("[\u4e00-\u9fff]", query["schema"]["default"])
        assert len(query["examples"]) >= 3
    summaries = [
        document["paths"][f"/time/{each}"]["get"]["summary"]
        for each in ("chat", "chat-tool-function", "chat-tool-method")
    ]
    assert summaries == [
        "No tool: the model answers from what it knows",
        "Function tool, found by its name: getCityTimeFunction",
        "Method tool, a marked method of an object: getCityTimeMethod",
    ]
    references = set(re.findall(r"#/components/schemas/(\w+)", str(document)))
    assert references <= set(document["components"]["schemas"])
    assert "HTTPValidationError" not in document["components"]["schemas"]


async def test_openapi_documents_the_one_form_of_the_streaming_route(offline: httpx.AsyncClient) -> None:
    # Swagger UI asks for the first form that is listed, and would else be refused with 406.
    paths = (await offline.get("/openapi.json")).json()["paths"]
    assert list(paths["/chat/stream"]["get"]["responses"]["200"]["content"]) == ["text/event-stream"]


async def test_every_problem_is_shown_by_an_example_in_plain_words(offline: httpx.AsyncClient) -> None:
    # One sentence without markup, and on each route the kinds that it can answer with.
    document = (await offline.get("/openapi.json")).json()
    shown = document["components"]["examples"]
    for name, example in shown.items():
        Problem.model_validate(example["value"])
        assert re.fullmatch(r"[A-Z][^`\n]+\.", example["value"]["detail"]), name
    responses = [
        each for path in document["paths"].values() for method in path.values() for each in [method["responses"]]
    ]
    contents = [each.get("content", {}).get("application/problem+json") for one in responses for each in one.values()]
    for examples in (content["examples"] for content in contents if content):
        for code, reference in examples.items():
            assert shown[reference["$ref"].removeprefix("#/components/examples/")]["value"]["code"] == code
    conflict = document["paths"]["/chat"]["get"]["responses"]["409"]["content"]["application/problem+json"]
    assert list(conflict["examples"]) == ["session-busy"]


@pytest.mark.parametrize("path", ["/docs", "/docs/static/swagger-ui-bundle.js", "/docs/static/swagger-ui.css"])
async def test_the_documentation_comes_from_this_host(path: str, offline: httpx.AsyncClient) -> None:
    page = await offline.get(path)
    assert page.status_code == 200
    if path == "/docs":
        assert re.findall(r"(?:src|href)=\"(?:https?:)?//", page.text) == []


async def test_every_answer_that_is_not_2xx_has_a_status_that_openapi_documents(offline: httpx.AsyncClient) -> None:
    document = (await offline.get("/openapi.json")).json()
    for path in sorted(path for path, methods in document["paths"].items() if "get" in methods):
        for query in ("?query=%20", "?query=%ff", "?query=" + "a" * 5000, "?query=" + "a" * 60_001):
            answer = await offline.get(path + query)
            assert str(answer.status_code) in document["paths"][path]["get"]["responses"], (path, query)
