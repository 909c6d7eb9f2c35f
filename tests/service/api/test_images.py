"""Images of a question in a session: what the model receives, what is stored, and what is refused."""

from base64 import b64encode
from collections.abc import AsyncGenerator
from functools import partial
from typing import Any

import httpx
import pytest

from tests.players.openai_player import OpenAIPlayer
from tests.service.pages.page import Stage, streamed
from tests.serving import service
from tests.waiting import until
from toolchat.service.api.body_limits import MAX_IMAGES_BYTES

PNG = b64encode(b"\x89PNG\r\n\x1a\nrest").decode()
IMAGE = f"data:image/png;base64,{PNG}"
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


@pytest.mark.parametrize(("path", "prefer"), [("/chat", ""), ("/chat/stream", ""), ("/chat", "respond-async")])
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
        (["A" * (MAX_IMAGES_BYTES + 400_000)], 413, "the body is longer than"),
    ],
)
async def test_what_is_no_image_or_too_much_is_refused(images: object, status: int, detail: str, stage: Stage) -> None:
    client, player = stage
    player.requests.clear()
    answer = await client.post("/chat", json=ASKED | {"images": images})
    assert (answer.status_code, answer.json()["detail"][: len(detail)]) == (status, detail)
    assert player.requests == []


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
