"""Ids in paths: logs and spans have their hash, whichever route they belong to."""

import httpx
import pytest

from tests.players.otlp_receiver import OtlpReceiver
from tests.service.observability.tracing import the
from tests.serving import service
from tests.waiting import until
from toolchat.service.observability.logs import JsonFormatter, hashed

ID = "canary-0123456789"


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/questions/{}", "/questions/{}"),
        ("/v1/responses/{}", "/v1/responses/{}"),
        ("/v1/responses/{}/input_items", "/v1/responses/{}/input_items"),
        ("/v1/conversations/{}", "/v1/conversations/{}"),
        ("/ai-sdk/chat/{}/stream", "/ai-sdk/chat/{}/stream"),
        ("/prefix/questions/{}", "/prefix/questions/{}"),
        ("/Questions/{}", "/Questions/{}"),
        ("/v1/chat/completions", "/v1/chat/completions"),
        ("/wp-admin/login.php", "/wp-admin/login.php"),
    ],
)
async def test_an_id_in_a_path_is_hashed_and_the_rest_of_the_path_is_shown(
    offline: httpx.AsyncClient, caplog: pytest.LogCaptureFixture, path: str, shown: str
) -> None:
    await offline.get(path.format(ID))
    [line] = [each for each in caplog.records if each.getMessage() == "request finished"]
    assert vars(line)["path"] == shown.format(hashed(ID))


async def test_spans_have_the_hash_as_well_also_of_a_request_that_was_refused() -> None:
    async with OtlpReceiver() as receiver, service(CHAT_PROVIDER="offline", **receiver.variables) as client:
        for headers in ({}, {"Host": "elsewhere.example"}):
            await client.get(f"/questions/{ID}", headers=headers)
            span = the(await receiver.trace(), "GET")
            assert span.attributes["url.path"] == f"/questions/{hashed(ID)}"
            assert ID not in repr(span)


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
