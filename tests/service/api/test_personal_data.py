"""What goes with a conversation, a response and a person: nothing that was stored for them is left."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.command_line import run
from tests.service.api.sessions.keeping import MARK, NAME, PERSON, keeping, kinds_of_the_source
from tests.serving import service
from tests.waiting import until

OF_A_PERSON = {"alarm", "mcp-request", "mcp-response"}
"""Kinds that belong to no conversation."""


async def test_nothing_of_a_conversation_is_left_after_its_deletion(tmp_path: Path) -> None:
    async with keeping(tmp_path) as kept:
        session = await kept.conversation()
        assert kinds_of_the_source() - await kept.kinds() == OF_A_PERSON
        assert len(await kept.with_any(session, MARK)) > 10
        assert (await kept.client.delete(f"/chat/{session}", headers=PERSON)).status_code == 204
        assert await kept.with_any(session, MARK) == []


async def test_nothing_of_a_person_is_left_after_its_deletion(tmp_path: Path) -> None:
    async with keeping(tmp_path) as kept:
        await kept.conversation()
        await kept.person()
        assert kinds_of_the_source() <= await kept.kinds()
        await kept.client.post("/chat", json={"query": "hello"}, headers={"X-API-Key": "other"})
        assert (await kept.client.delete("/person", headers=PERSON)).status_code == 204
        assert await kept.with_any(NAME, MARK) == []
        assert await kept.kinds() == {"audit", "memory"}


async def test_an_export_has_all_that_is_stored_for_a_person(tmp_path: Path) -> None:
    async with keeping(tmp_path) as kept:
        await kept.conversation()
        await kept.person()
        await kept.client.post("/chat", json={"query": "hello"}, headers={"X-API-Key": "other"})
        answer = await kept.client.get("/person", headers=PERSON)
        kinds = [each["kind"] for each in map(json.loads, answer.text.splitlines())]
        assert (set(kinds), kinds.count("memory")) == (kinds_of_the_source(), 1)
        printed = run("person", "export", NAME, cwd=tmp_path, STATE_URL=f"sqlite:///{tmp_path}/state.db").stdout
        assert len(printed.splitlines()) == len(kinds)


async def test_only_a_privacy_officer_names_others(tmp_path: Path) -> None:
    async with keeping(tmp_path) as kept:
        await kept.chat("hello", "s")
        for key, status in (("other", 403), ("officer", 204)):
            answer = await kept.client.delete("/person", params={"name": NAME}, headers={"X-API-Key": key})
            assert answer.status_code == status
        assert await kept.with_any(MARK) == []


async def test_the_command_deletes_while_the_service_runs(tmp_path: Path) -> None:
    async with keeping(tmp_path) as kept:
        await kept.chat("hello", "s")
        done = run("person", "delete", NAME, cwd=tmp_path, STATE_URL=f"sqlite:///{tmp_path}/state.db")
        assert (done.returncode, await kept.with_any(MARK)) == (0, [])
        await kept.chat("again", "s")
        shown = (await kept.client.get("/chat/s", headers=PERSON)).json()
        assert shown["turns"] == 1


async def test_what_cannot_be_read_is_deleted_all_the_same(tmp_path: Path) -> None:
    async with keeping(tmp_path) as kept:
        await kept.chat("hello", "s")
        await kept.in_background("hello", "s", "completed")
        for kind in ("memory", "background"):
            (key,) = [each for each in await kept.with_any(MARK) if each.startswith(f"{kind}:")]
            await kept.store.put(key, b"not JSON", ttl=60)
        assert (await kept.client.delete("/person", headers=PERSON)).status_code == 204
        assert await kept.with_any(NAME, MARK) == []


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


@pytest.mark.parametrize("is_cancelled", [True, False])
async def test_a_response_that_runs_or_was_cancelled_can_be_deleted(is_cancelled: bool) -> None:
    async with service() as client:
        path = f"/v1/responses/{await responded(client, background=True)}"
        if is_cancelled:
            await client.post(f"{path}/cancel")
        assert (await client.delete(path)).status_code == 200
        assert (await client.get(path)).status_code == 404
