"""Guessing finds nothing, tells nothing, and fills no memory."""

import secrets
import tracemalloc

import httpx

from app.access.keys import KeyRegistry, digest_of, new_key
from app.access.principals import Principal
from tests.serving import service

GUESSES = 100_000
KEY = "toolchat_right"


def test_a_hundred_thousand_guessed_keys_match_nothing_and_leave_no_memory() -> None:
    book = KeyRegistry({digest_of(new_key()): Principal(f"p{number}") for number in range(100)})
    tracemalloc.start()
    assert not any(book.find(secrets.token_urlsafe(32)) for _ in range(GUESSES))
    grown, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert grown < 64 * 1024


async def test_guessed_sessions_and_approvals_are_not_there_and_leave_nothing() -> None:
    async with service(API_KEYS=f"alice={digest_of(KEY)}") as client:
        answers = [await guess(client, number) for number in range(500)]
        kept = await client.get("/metrics", headers={"X-API-Key": KEY})
    assert {(each.status_code, each.json()["code"]) for each in answers} == {(404, "not-found")}
    assert (
        len({each.text.replace(each.json()["request_id"], "") for each in answers if "approvals" in str(each.url)}) == 1
    )
    assert kept.status_code == 200


async def guess(client: httpx.AsyncClient, number: int) -> httpx.Response:
    headers = {"X-API-Key": KEY}
    if number % 2:
        return await client.get(f"/chat/{secrets.token_hex(16)}", headers=headers)
    return await client.post(f"/approvals/{secrets.token_urlsafe(16)}", headers=headers, json={"decisions": {}})
