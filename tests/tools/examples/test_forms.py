"""Every example: its forms of answers, its documentation, the tools that it offers, its switch."""

from typing import Any

import httpx
import pytest

from app.api.schemas import ChatAnswer
from tests.chat.played import EVENTS, JSON
from tests.documented import problems_of
from tests.players.openai_player import OpenAIPlayer
from tests.serving import events_of, service
from tests.tools.examples.asking import READING, SAID
from toolchat.errors import ConfigurationError


@pytest.mark.parametrize("path", READING)
async def test_every_example_answers_in_all_three_forms_without_a_key(path: str, offline: httpx.AsyncClient) -> None:
    text, document, stream = [await offline.get(path, headers=form) for form in ({}, JSON, EVENTS)]
    assert [each.status_code for each in (text, document, stream)] == [200, 200, 200]
    assert text.headers["content-type"] == "text/plain; charset=utf-8"
    answer = ChatAnswer.model_validate(document.json())
    assert len(answer.tool_calls) == (0 if path == "/tools/simple/test" else 1)
    assert all(call.outcome == "ok" for call in answer.tool_calls)
    assert events_of(stream.text)[-1].name == "done"
    ChatAnswer.model_validate(events_of(stream.text)[-1].data)


SHOWN = (
    ("/tools/simple/call", "Which weekday is it tomorrow?", "Tomorrow is "),
    ("/tools/simple/call", "后天是几号?", "后天是"),
    ("/tool/control", "Which weekday is it the day after tomorrow?", "The day after tomorrow is "),
    ("/tool/function/annotation", "What is the weather in Paris?", "Paris 30°C"),
    ("/tool/function/programmatic", "杭州天气怎么样?用华氏度", "杭州 86°F"),
    ("/tool/context/order", "Show me trade order 123", "订单号:123"),
    ("/tool/context/order-direct", "查询订单456", "订单号:456"),
)


@pytest.mark.parametrize(("path", "query", "said"), SHOWN)
async def test_the_questions_shown_in_the_documentation_are_answered(
    path: str, query: str, said: str, offline: httpx.AsyncClient
) -> None:
    assert said in (await offline.get(path, params={"query": query})).text


async def test_the_first_example_offers_the_model_nothing_and_the_others_one_tool_each() -> None:
    async with OpenAIPlayer(lambda _: SAID) as player, service(OPENAI_BASE_URL=player.base_url) as client:
        for path in READING:
            await client.get(path)
    offered = [[tool["function"] for tool in request.body.get("tools", [])] for request in player.requests]
    assert [[tool["name"] for tool in tools] for tools in offered] == [
        [],
        ["getCurrentDateTime"],
        ["getCurrentDateTimeWithoutAnnotation"],
        ["currentWeather"],
        ["currentWeather"],
        ["getTradeOrderInfo"],
        ["getTradeOrderInfo"],
        ["getCurrentDateTime"],
    ]
    assert offered[1][0]["description"] == offered[2][0]["description"] == "获取用户时区的当前日期和时间"
    assert offered[3] == offered[4]
    assert set(offered[3][0]["parameters"]["properties"]) == {"location", "unit"}
    assert set(offered[5][0]["parameters"]["properties"]) == {"id"}


async def test_switched_off_the_examples_say_which_variable_to_set() -> None:
    async with service(EXAMPLES_ENABLED="false") as client:
        answers = [await client.get(path) for path in READING]
        assert (await client.get("/time/chat-tool-function")).status_code == 200
    for answer in answers:
        assert (answer.status_code, answer.json()["code"]) == (503, "not-configured")
        assert "EXAMPLES_ENABLED=true" in answer.json()["detail"]


@pytest.mark.parametrize("zone", ["CST", "Asia/Peking", "../etc/passwd", "+08:00"])
async def test_a_zone_that_does_not_exist_stops_the_start(zone: str) -> None:
    with pytest.raises(ConfigurationError, match="EXAMPLES_ZONE"):
        async with service(EXAMPLES_ZONE=zone):
            pass


async def shown(client: httpx.AsyncClient) -> dict[tuple[str, str], dict[str, Any]]:
    """What OpenAPI shows of the examples, by path and method."""
    paths = (await client.get("/openapi.json")).json()["paths"]
    found = {(path, method): each for path, methods in paths.items() for method, each in methods.items()}
    return {at: each for at, each in found.items() if each.get("tags") == ["Examples"]}


async def test_openapi_shows_the_examples_under_their_own_tag(offline: httpx.AsyncClient) -> None:
    assert set(await shown(offline)) == {(path, method) for path in READING for method in ("get", "post")}


@pytest.mark.parametrize("path", READING)
async def test_openapi_shows_an_example_with_every_status_and_three_questions(
    path: str, offline: httpx.AsyncClient
) -> None:
    for method in ("get", "post"):
        example = (await shown(offline))[path, method]
        assert set(problems_of(example)) >= {400, 406, 414, 422, 502, 503, 504}
        posted = example.get("requestBody", {}).get("content", {}).get("application/json", {})
        assert len((posted or example["parameters"][0])["examples"]) >= 3
