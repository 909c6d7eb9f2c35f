"""Ids in paths: logs and spans have their hash, whichever route they belong to."""

import logging
import re

import httpx
import pytest
from fastapi.routing import iter_route_contexts

from tests.application import create_app
from tests.players.otlp_receiver import OtlpReceiver
from tests.serving import configured, service
from tests.waiting import until
from toolchat.service.observability.logs import JsonFormatter, hashed

ID = "canary-0123456789"


@pytest.mark.parametrize(
    "path", ["/prefix/questions/{}", "/Questions/{}", "/v1/chat/completions", "/wp-admin/login.php"]
)
async def test_what_stands_for_a_parameter_is_hashed_and_the_rest_of_the_path_is_shown(
    offline: httpx.AsyncClient, caplog: pytest.LogCaptureFixture, path: str
) -> None:
    await offline.get(path.format(ID))
    [line] = [each for each in caplog.records if each.getMessage() == "request finished"]
    assert vars(line)["path"] == path.format(hashed(ID))


async def test_no_id_in_the_path_of_any_route_stands_in_logs_spans_or_metrics(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="toolchat")
    routes = iter_route_contexts(create_app(configured(CHAT_PROVIDER="offline")).router.routes)
    paths = {re.sub(r"{.*?}", ID, each.path) for each in routes if each.path and "{" in each.path}
    async with OtlpReceiver() as receiver, service(CHAT_PROVIDER="offline", **receiver.variables) as client:
        for path in paths:
            for method in ("GET", "POST", "DELETE"):
                await client.request(method, path, json={} if method == "POST" else None)
        await client.get(f"/questions/{ID}", headers={"Host": "elsewhere.example"})  # which is refused at once

        async def all_are_sent() -> bool:
            return len(receiver.spans) > 3 * len(paths)

        await until(all_are_sent)
        figures = (await client.get("/metrics")).text
    logged = [JsonFormatter().format(each) for each in caplog.records if each.name.startswith("toolchat")]
    assert len(paths) >= 20
    assert [each for each in (*logged, *map(repr, receiver.spans), *figures.splitlines()) if ID in each] == []
    assert any(hashed(ID) in str(each.attributes["url.path"]) for each in receiver.spans)


async def test_the_id_of_a_background_question_appears_in_no_line(
    offline: httpx.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.handler.setFormatter(JsonFormatter())
    headers = {"Prefer": "respond-async"}
    accepted = await offline.post("/chat", json={"userInput": "What time is it in Tokyo?"}, headers=headers)
    path = accepted.headers["location"]

    async def is_completed() -> bool:
        return bool((await offline.get(path)).json()["status"] == "completed")

    await until(is_completed)
    identifier = path.rpartition("/")[2]
    assert f'"request_id":"{hashed(identifier)}"' in caplog.text
    assert identifier not in caplog.text
