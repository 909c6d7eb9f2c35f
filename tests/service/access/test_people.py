"""People behind a trusted page: whose everything is, what they may use together, and who may name them."""

import time
from collections.abc import AsyncGenerator
from pathlib import Path

import httpx
import jwt
import pytest

from tests.serving import service
from toolchat.errors import Unauthorized
from toolchat.service.access.keys import digest_of
from toolchat.service.access.people import People, person_of

SECRET = "a secret of the page, longer than 32 bytes"
# As Open WebUI 0.11 and LibreChat 0.8 send them, the latter with `X-User-Id: {{LIBRECHAT_USER_ID}}` in its file.
OPEN_WEBUI = {
    "X-OpenWebUI-User-Name": "Alice%20Adams",
    "X-OpenWebUI-User-Id": "2d95199f-1f70-4690-9b4a-8f98280ca9da",
    "X-OpenWebUI-User-Email": "alice@example.org",
    "X-OpenWebUI-User-Role": "user",
    "X-OpenWebUI-Chat-Id": "040539c8-6c35-4a27-8a4c-0a4b9a1f9d3e",
}
LIBRECHAT = {"X-User-Id": "65f0c2a81e2b4c0012ab34cd"}
KEYS = f"""
[[keys]]
name = "webui"
sha256 = "{digest_of("webui")}"
tokens_per_day = 100000
people = {{ header = "X-OpenWebUI-User-Id", tenant_header = "X-Customer", requests_per_minute = 3 }}

[[keys]]
name = "librechat"
sha256 = "{digest_of("librechat")}"
requests_per_minute = 3
people = {{ header = "X-User-Id" }}

[[keys]]
name = "signed"
sha256 = "{digest_of("signed")}"
people = {{ token_header = "X-OpenWebUI-User-Jwt" }}

[[keys]]
name = "plain"
sha256 = "{digest_of("plain")}"
"""


@pytest.fixture
async def client(tmp_path: Path) -> AsyncGenerator[httpx.AsyncClient, None]:
    file = tmp_path / "keys.toml"
    file.write_text(KEYS)
    async with service(API_KEYS_FILE=str(file), PEOPLE_JWT_SECRET=SECRET) as client:
        yield client


async def ask(client: httpx.AsyncClient, key: str, session: str = "s", **headers: str) -> httpx.Response:
    asked = {"userInput": "What time is it in Rome?", "sessionId": session}
    return await client.post("/chat", json=asked, headers={"X-API-Key": key, **headers})


async def sessions(client: httpx.AsyncClient, key: str, **headers: str) -> list[str]:
    found = await client.get("/sessions", headers={"X-API-Key": key, **headers})
    return [each["session_id"] for each in found.json()]


def signed(subject: str = "alice", *, secret: str = SECRET, seconds: int = 86_400) -> dict[str, str]:
    now = int(time.time())
    content = {"sub": subject, "iss": "open-webui", "iat": now, "exp": now + seconds}
    return {"X-OpenWebUI-User-Jwt": jwt.encode(content, secret, algorithm="HS256")}


@pytest.mark.parametrize(
    ("key", "one", "other"),
    [
        ("webui", OPEN_WEBUI, OPEN_WEBUI | {"X-OpenWebUI-User-Id": "another"}),
        ("librechat", LIBRECHAT, {"X-User-Id": "6600"}),
        ("signed", signed("alice"), signed("bob")),
    ],
)
async def test_what_a_page_stores_for_a_person_belongs_to_that_person(
    client: httpx.AsyncClient, key: str, one: dict[str, str], other: dict[str, str]
) -> None:
    assert (await ask(client, key, "mine", **one)).status_code == 200
    assert (await sessions(client, key, **one), await sessions(client, key, **other)) == (["mine"], [])
    theirs = [await client.get("/chat/mine", headers={"X-API-Key": key, **who}) for who in (one, other)]
    assert [each.status_code for each in theirs] == [200, 404]


async def test_a_person_has_its_own_limit_and_all_of_a_page_have_the_pages(client: httpx.AsyncClient) -> None:
    alice = [(await ask(client, "webui", **OPEN_WEBUI)).status_code for _ in range(4)]
    assert (alice, (await ask(client, "webui", **{"X-OpenWebUI-User-Id": "bob"})).status_code) == (
        [200] * 3 + [429],
        200,
    )
    together = [(await ask(client, "librechat", **{"X-User-Id": f"{number}"})).status_code for number in range(4)]
    assert together == [200] * 3 + [429]


async def test_only_a_key_that_speaks_for_people_names_them(client: httpx.AsyncClient) -> None:
    refused = await ask(client, "plain", **OPEN_WEBUI)
    assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
    assert (await ask(client, "plain")).status_code == 200
    unnamed = await ask(client, "webui")
    assert (unnamed.status_code, "X-OpenWebUI-User-Id" in unnamed.json()["detail"]) == (403, True)
    assert (await client.get("/v1/models", headers={"X-API-Key": "webui"})).status_code == 200


@pytest.mark.parametrize("name", ["a\u202eb", "a\x7fb", "x" * 257, "a\u200bb"])
async def test_a_person_with_invisible_characters_or_without_end_is_refused(
    client: httpx.AsyncClient, name: str
) -> None:
    headers = {b"X-API-Key": b"webui", b"X-OpenWebUI-User-Id": name.encode()}
    answer = await client.post("/chat", json={"userInput": "Hi"}, headers=list(headers.items()))
    assert answer.status_code in (400, 422)


@pytest.mark.parametrize("name", ["李雷", "a/b", "a~b", "plain", "O'Neil Ö"])
async def test_a_name_in_any_script_is_kept_apart(client: httpx.AsyncClient, name: str) -> None:
    headers = {b"X-API-Key": b"webui", b"X-OpenWebUI-User-Id": name.encode()}
    asked = await client.post("/chat", json={"userInput": "Hi", "sessionId": "x"}, headers=list(headers.items()))
    assert asked.status_code == 200
    assert await sessions(client, "plain") == []


FORGED = [
    signed(secret="another secret, longer than 32 bytes!"),
    signed(seconds=-60),
    {"X-OpenWebUI-User-Jwt": "x"},
    signed(""),
]


@pytest.mark.parametrize("headers", FORGED)
async def test_a_token_that_the_page_did_not_sign_is_refused(
    client: httpx.AsyncClient, headers: dict[str, str]
) -> None:
    assert (await ask(client, "signed", **headers)).status_code in (401, 403)


def test_without_the_secret_no_token_names_anybody() -> None:
    people, headers = People(token_header="X-OpenWebUI-User-Jwt"), signed(secret="x" * 32)
    with pytest.raises(Unauthorized, match="PEOPLE_JWT_SECRET"):
        person_of(people, [(name.lower().encode(), value.encode()) for name, value in headers.items()], None)


async def test_two_names_in_one_request_are_refused(client: httpx.AsyncClient) -> None:
    headers = [("X-API-Key", "webui"), ("X-OpenWebUI-User-Id", "alice"), ("X-OpenWebUI-User-Id", "bob")]
    answer = await client.post("/chat", json={"userInput": "Hi"}, headers=headers)
    assert answer.status_code in (400, 422)
