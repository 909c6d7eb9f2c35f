"""The listed models: the service with all its tools, with none, and with those of one module."""

from datetime import datetime

import httpx
import pytest

from tests.service.protocols.openai.asking import COMPLETIONS, completion, error_of, played, says, user


async def test_the_models_are_the_service_and_each_module_with_tools(offline: httpx.AsyncClient) -> None:
    answer = await offline.get("/v1/models")
    document = answer.json()
    assert (document["object"], document["has_more"]) == ("list", False)
    names = [each["id"] for each in document["data"]]
    assert names[:2] == ["toolchat", "toolchat-plain"]
    assert {"toolchat-time", "toolchat-todo"} <= set(names)
    assert "toolchat-weather" not in names  # it has no key
    for each in document["data"]:
        assert (each["object"], each["owned_by"]) == ("model", "toolchat")
        assert isinstance(each["created"], int)
        # Anthropic's clients read these fields.
        assert (each["type"], each["display_name"]) == ("model", each["id"])
        assert datetime.fromisoformat(each["created_at"]).timestamp() == each["created"]
        assert (await offline.get(f"/v1/models/{each['id']}")).json() == each


@pytest.mark.parametrize("name", ["gpt-4o", "toolchat-", "toolchat-weather", "Toolchat"])
async def test_other_models_do_not_exist(name: str, offline: httpx.AsyncClient) -> None:
    assert error_of(await offline.get(f"/v1/models/{name}")) == (404, "model_not_found", "model")


async def test_claude_stands_for_the_service_for_clients_of_anthropics_api(offline: httpx.AsyncClient) -> None:
    path = "/v1/models/claude-opus-4-1"
    shown = await offline.get(path, headers={"anthropic-version": "2023-06-01"})
    assert (shown.status_code, shown.json()["id"]) == (200, "toolchat")
    assert error_of(await offline.get(path))[:2] == (404, "model_not_found")


async def test_the_model_of_an_unregistered_module_names_the_missing_setting(offline: httpx.AsyncClient) -> None:
    answer = await offline.post(COMPLETIONS, json={"model": "toolchat-weather", "messages": [user("?")]})
    assert error_of(answer) == (404, "model_not_found", "model")
    assert "WEATHER_API_KEY" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("model", "tools"),
    [
        ("toolchat", {"getCityTimeFunction"}),
        ("toolchat-time", {"getCityTimeFunction"}),
        ("toolchat-todo", {"todoUpdate", "todoRead"}),
        ("toolchat-plain", set()),
    ],
)
async def test_a_model_gets_its_tools(model: str, tools: set[str]) -> None:
    async with played([says("ok")]) as (client, player):
        await completion(client, user("?"), model=model)
    assert {each["function"]["name"] for each in player.requests[0].body.get("tools", ())} == tools
