"""What goes with a conversation, and with a response, when it is deleted."""

from typing import Any

import httpx
import pytest

from tests.serving import service
from tests.waiting import until

QUESTION = "What time is it in Rome?"


async def responded(client: httpx.AsyncClient, **more: Any) -> str:
    answer = await client.post("/v1/responses", json={"model": "toolchat", "input": QUESTION, **more})
    assert answer.status_code == 200
    return str(answer.json()["id"])


async def has_ended(client: httpx.AsyncClient, path: str) -> bool:
    return bool((await client.get(path)).json()["status"] == "completed")


async def test_everything_of_a_conversation_is_deleted_with_it() -> None:
    async with service() as client:
        response = await responded(client, conversation="gone")
        other = await responded(client, conversation="kept")
        asked = {"userInput": QUESTION, "sessionId": "gone"}
        accepted = await client.post("/chat", json=asked, headers={"Prefer": "respond-async"})
        paths = ["/chat/gone", f"/v1/responses/{response}", accepted.headers["location"], f"/v1/responses/{other}"]
        await until(lambda: has_ended(client, paths[2]))
        assert [(await client.get(path)).status_code for path in paths] == [200] * 4
        assert (await client.delete("/chat/gone")).status_code == 204
        assert [(await client.get(path)).status_code for path in paths] == [404] * 3 + [200]


async def test_a_background_response_is_deleted_with_its_events() -> None:
    async with service() as client:
        path = f"/v1/responses/{await responded(client, background=True)}"
        await until(lambda: has_ended(client, path))
        assert (await client.delete(path)).status_code == 200
        for query in ("", "?stream=true"):
            assert (await client.get(path + query)).status_code == 404


@pytest.mark.parametrize("is_cancelled", [True, False])
async def test_a_response_that_runs_or_was_cancelled_can_be_deleted(is_cancelled: bool) -> None:
    async with service() as client:
        path = f"/v1/responses/{await responded(client, background=True)}"
        if is_cancelled:
            await client.post(f"{path}/cancel")
        assert (await client.delete(path)).status_code == 200
        assert (await client.get(path)).status_code == 404
