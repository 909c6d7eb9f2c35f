"""Images of a question in a session: what the model receives, what is stored, and what is refused."""

import sqlite3
from base64 import b64encode
from collections.abc import AsyncGenerator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.players.openai_player import Answer, OpenAIPlayer, PlayedRequest, delta, finish, sse
from tests.service.api.sessions.deciding import LIGHTS, approve
from tests.service.pages.page import Stage, streamed
from tests.serving import service
from tests.waiting import until
from toolchat.service.api.body_limits import MAX_IMAGES_BYTES

DOORS = [("/chat", ""), ("/chat/stream", ""), ("/chat", "respond-async")]
PNG = b64encode(b"\x89PNG\r\n\x1a\nrest").decode()
IMAGE = f"data:image/png;base64,{PNG}"
SYSTEM = {"role": "system", "content": "Be kind."}
ASKED: dict[str, Any] = {"query": "What is it?", "images": [IMAGE]}


@pytest.fixture(scope="module")
async def stage() -> AsyncGenerator[Stage, None]:
    async with (
        OpenAIPlayer(lambda _: streamed("A house.")) as player,
        service(OPENAI_BASE_URL=player.base_url, OPENAI_IMAGES="true") as client,
    ):
        yield Stage(client, player)


async def is_stored(client: httpx.AsyncClient, session: str) -> bool:
    return (await client.get(f"/chat/{session}")).status_code == 200


@pytest.mark.parametrize(("path", "prefer"), DOORS)
async def test_the_model_gets_the_image_and_the_session_keeps_a_note(path: str, prefer: str, stage: Stage) -> None:
    # Also where the question is stored first and answered in the background.
    (client, player), session = stage, f"s{len(prefer + path)}"
    assert (await client.get("/")).json()["takes_images"]
    answer = await client.post(path, json=ASKED | {"sessionId": session}, headers={"Prefer": prefer})
    assert answer.is_success, answer.text
    await until(partial(is_stored, client, session))
    text, image = player.requests[-1].body["messages"][-1]["content"]
    assert (text["text"], image["image_url"]) == ("What is it?", {"url": IMAGE})
    await client.post("/chat", json={"query": "And now?", "sessionId": session})
    sent = [each["content"] for each in player.requests[-1].body["messages"] if each["role"] == "user"]
    assert sent == ["What is it?\n[image left out]", "And now?"]


@pytest.mark.parametrize(
    ("images", "status", "detail"),
    [
        ([IMAGE] * 5, 422, "images: List should have at most 4 items"),
        ("one", 422, "images: must be a list of strings"),
        (["https://a.example/b.png"], 422, "images[0]: must be a data URL of a png, jpeg, gif or webp image in base64"),
        ([IMAGE, "data:image/svg+xml;base64,PHN2Zz4="], 422, "images[1]: must be a data URL"),
        ([f"data:image/png;base64,{PNG}%"], 422, "images[0]: holds no png image"),
        ([f"data:image/gif;base64,{PNG}"], 422, "images[0]: holds no gif image"),
        ([IMAGE, "A" * MAX_IMAGES_BYTES], 413, "images: are longer than 4194304 bytes together"),
        (["A" * (MAX_IMAGES_BYTES + 400_000)], 413, "the body is longer than"),
    ],
)
async def test_what_is_no_image_or_too_much_is_refused(images: object, status: int, detail: str, stage: Stage) -> None:
    client, player = stage
    player.requests.clear()
    answer = await client.post("/chat", json=ASKED | {"images": images})
    assert (answer.status_code, answer.json()["detail"][: len(detail)]) == (status, detail)
    assert player.requests == []


def looking(request: PlayedRequest) -> Answer:
    """A model that asks for its tool if the question says please, and then says what it sees."""
    asked = request.body["messages"][-1]
    if asked["role"] == "user" and "please" in str(asked["content"]):
        call = {
            "id": "c0",
            "index": 0,
            "type": "function",
            "function": {"name": "switchLight", "arguments": '{"on": true}'},
        }
        return sse(delta(tool_calls=[call]), finish("tool_calls"))
    return streamed("A house.")


async def post(client: httpx.AsyncClient, path: str, prefer: str = "", **fields: object) -> dict[str, Any]:
    """The whole answer to a question, or the document of a background question that has ended."""
    accepted = "text/event-stream" if "stream" in path else "application/json"
    answer = await client.post(path, json=ASKED | fields, headers={"Prefer": prefer, "Accept": accepted})
    assert answer.is_success, answer.text
    if prefer:
        place = answer.headers["location"]

        async def has_ended() -> bool:
            return (await client.get(place)).json()["status"] not in ("queued", "running")

        await until(has_ended)
        answer = await client.get(place)
    return dict(answer.json()) if "stream" not in path else {}


@pytest.mark.parametrize(("path", "prefer"), DOORS)
async def test_a_question_with_images_has_the_system_prompt_like_any_other(path: str, prefer: str) -> None:
    async with (
        OpenAIPlayer(looking) as player,
        service(LIGHTS, OPENAI_BASE_URL=player.base_url, OPENAI_IMAGES="true", SYSTEM_PROMPT="Be kind.") as client,
    ):
        await post(client, path, prefer, sessionId="s")
        await post(client, path, prefer, sessionId="s")
        waiting = await post(client, "/chat", query="please", sessionId="s")
        place, call = f"/approvals/{waiting['approval']['id']}", waiting["approval"]["calls"][0]["id"]
        assert (await approve(client, place, call)).json()["answer"] == "A house."
        assert len(player.requests) == 4
        for request in player.requests:
            roles = [each["role"] for each in request.body["messages"]]
            assert (request.body["messages"][0], roles.count("system")) == (SYSTEM, 1)


@pytest.mark.parametrize("prefer", ["", "respond-async"])
async def test_a_question_that_has_ended_or_waits_keeps_no_image_in_the_store(prefer: str, tmp_path: Path) -> None:
    def stored() -> list[str]:
        with closing(sqlite3.connect(tmp_path / "state.db")) as file:
            rows = file.execute(
                "SELECT key, value FROM entries UNION ALL SELECT key, line FROM entries JOIN log USING (id)"
            )
            return [key for key, value in rows if PNG.encode() in bytes(value)]

    async with (
        OpenAIPlayer(looking) as player,
        service(
            LIGHTS,
            OPENAI_BASE_URL=player.base_url,
            OPENAI_IMAGES="true",
            STATE_URL=f"sqlite:///{tmp_path}/state.db",
        ) as client,
    ):
        await post(client, "/chat", prefer)
        document = await post(client, "/chat", prefer, query="please")
        waiting = document["answer"] if prefer else document
        assert stored() == []
        place, call = f"/approvals/{waiting['approval']['id']}", waiting["approval"]["calls"][0]["id"]
        assert (await approve(client, place, call)).json()["answer"] == "A house."
        asked = [each["content"] for each in player.requests[-1].body["messages"] if each["role"] == "user"]
        assert asked == ["please\n[image left out]"]


async def test_images_belong_into_the_body_of_a_post_to_chat(stage: Stage) -> None:
    for refused in (
        await stage.client.get("/chat", params=ASKED),
        await stage.client.post("/chat", params={"images": IMAGE}),
        await stage.client.post("/todo/chat", json=ASKED),
    ):
        assert (refused.status_code, refused.json()["detail"][:8]) == (422, "images: ")


async def test_a_model_without_images_refuses_them_with_its_name() -> None:
    async with service() as client:
        assert not (await client.get("/")).json()["takes_images"]
        answer = await client.post("/chat", json=ASKED)
        assert (answer.status_code, answer.json()["detail"]) == (400, "images: the model offline takes no images")
