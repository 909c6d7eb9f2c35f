"""Pages of other sites can have a browser send requests; every operation with an effect refuses them."""

from collections.abc import AsyncGenerator
from typing import NamedTuple

import httpx
import pytest

from tests.players.openai_player import OpenAIPlayer, message, whole
from tests.service.api.sessions.conversing import conversation
from tests.serving import service

READS = {
    "GET /person",
    "GET /sessions/{sessionId}",
    *("GET /", "GET /tools", "GET /metrics", "GET /health/live", "GET /health/ready", "GET /v1/models"),
    *("GET /v1/models/{model}", "GET /todo/{sessionId}", "GET /tool/alarms", "GET /chat/{sessionId}", "GET /sessions"),
    *("GET /approvals", "GET /approvals/{identifier}", "GET /audit", "GET /.well-known/oauth-protected-resource/mcp"),
    "GET /questions/{identifier}",
    *("GET /v1/responses/{identifier}", "GET /v1/responses/{identifier}/input_items"),
    *("GET /v1/conversations/{identifier}", "GET /v1/conversations/{identifier}/items"),
    "GET /v1/conversations/{identifier}/items/{item}",
}
"""They change nothing, cost nothing, and a page of another site cannot read the answer."""
PREFLIGHTED = {
    *("DELETE /chat/{sessionId}", "POST /approvals/{identifier}", "DELETE /v1/responses/{identifier}"),
    "DELETE /v1/conversations/{identifier}",
}
"""A browser asks before it sends a DELETE or JSON for another site's page, and CORS says no."""

CROSS_SITE: list[dict[str, str]] = [
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "Cross-Site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "same-site", "Origin": "http://other.localhost"},
    {"Sec-Fetch-Site": "same-site", "Referer": "http://other.localhost/page"},
    {"Origin": "http://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://127.0.0.1:1"},
    {"Referer": "http://evil.example/page"},
]
UNINTENDED: list[dict[str, str]] = [
    {"Sec-Purpose": "prefetch"},
    {"Sec-Purpose": "prefetch;prerender"},
    {"Purpose": "prefetch"},
    {"X-Moz": "prefetch"},
    {"Sec-Fetch-Dest": "image"},
    *({"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Dest": each} for each in ("image", "script", "iframe", "style")),
]
INTENDED: list[dict[str, str]] = [
    {},
    {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Dest": "empty", "Sec-Fetch-Mode": "cors"},
    {"Sec-Fetch-Site": "none", "Sec-Fetch-Dest": "document", "Sec-Fetch-User": "?1"},
    {"Sec-Fetch-Site": "cross-site", "X-API-Key": "of a program whose window is a file"},
]


class Guarded(NamedTuple):
    """A service with every tool and route, and its model."""

    client: httpx.AsyncClient
    player: OpenAIPlayer
    operations: list[str]


@pytest.fixture(scope="module")
async def guarded() -> AsyncGenerator[Guarded, None]:
    async with (
        OpenAIPlayer(lambda _: whole(message(content="Done."))) as player,
        service(OPENAI_BASE_URL=player.base_url, SANDBOX_URL="http://127.0.0.1:9", BREAKER_FAILURES="0") as client,
    ):
        paths = (await client.get("/openapi.json")).json()["paths"]
        yield Guarded(client, player, [f"{method.upper()} {path}" for path in paths for method in paths[path]])


async def send(client: httpx.AsyncClient, operation: str, headers: dict[str, str]) -> httpx.Response:
    """Send a request that is valid for questions and otherwise gets as far as the validation of its body."""
    method, path = operation.replace("{", "").replace("}", "").split()
    if method == "POST":
        return await client.post(path, json={"query": "hi"}, headers=headers)
    return await client.request(method, f"{path}?query=hi", headers=headers)


async def test_every_operation_with_an_effect_refuses_the_pages_of_other_sites(guarded: Guarded) -> None:
    # A new operation is refused them, too, or it is listed above.
    client, player, operations = guarded
    asked = len(player.requests)
    effects = [each for each in operations if each not in READS | PREFLIGHTED]
    answers = {each: await send(client, each, CROSS_SITE[0]) for each in effects}
    assert {name: each.status_code for name, each in answers.items() if each.status_code != 403} == {}
    assert len(player.requests) == asked
    assert (await client.get("/tool/alarms")).json() == []
    accepted = {each: await send(client, each, INTENDED[1]) for each in effects}
    assert {name for name, each in accepted.items() if each.status_code == 403} == set()
    assert len(effects) > 30
    assert set(operations) > READS | PREFLIGHTED


async def test_every_question_route_rejects_prefetches_and_embedded_requests(guarded: Guarded) -> None:
    client, player, operations = guarded
    asked = len(player.requests)
    questions = [each for each in operations if each.startswith("GET ") and each not in READS]
    for headers in (UNINTENDED[0], UNINTENDED[-1]):
        statuses = {each: (await send(client, each, headers)).status_code for each in questions}
        assert {name: status for name, status in statuses.items() if status != 403} == {}
    assert len(player.requests) == asked


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_cross_site_requests_and_prefetches_have_no_effect(method: str, guarded: Guarded) -> None:
    client, player, _ = guarded
    asked, fields = len(player.requests), {"query": "hi", "sessionId": "s-9"}
    place = "params" if method == "GET" else "json"

    async def answer(headers: dict[str, str]) -> httpx.Response:
        return await client.request(method, "/chat", headers=headers, **{place: fields})  # type: ignore[arg-type]

    for headers in [*CROSS_SITE, *UNINTENDED]:
        refused = await answer(headers)
        assert (refused.status_code, refused.json()["code"]) == (403, "cross-site"), headers
    assert len(player.requests) == asked
    assert await conversation(client, "s-9") == []
    ours = str(client.base_url).rstrip("/")
    for headers in [*INTENDED, {"Origin": ours}, {"Referer": f"{ours}/playground/"}]:
        assert (await answer(headers)).status_code == 200, headers
    await client.delete("/chat/s-9")


@pytest.mark.parametrize("media_type", ["text/plain", "", "application/problem+json", "text/plain; application/json"])
async def test_no_operation_reads_a_body_that_is_not_sent_as_json(media_type: str, guarded: Guarded) -> None:
    # These are the types that a page of another site may send without being asked for CORS.
    client, player, operations = guarded
    asked = len(player.requests)
    body = b'{"query": "hi", "model": "toolchat", "messages": [{"role": "user", "content": "hi"}]}'
    headers = {"Content-Type": media_type, "Idempotency-Key": "k"} if media_type else {}
    answered = {}
    for operation in [each for each in operations if each.startswith("POST ")]:
        path = operation.replace("{", "").replace("}", "").split()[1]
        answer = await client.post(path, content=body, headers=headers)
        answered[operation] = answer.status_code
    assert {name: status for name, status in answered.items() if status < 400} == {}
    assert {answered["POST /v1/chat/completions"], answered["POST /ai-sdk/chat"], answered["POST /chat"]} == {415}
    assert len(player.requests) == asked
