"""The first failure after a start grows a series that was told before, since Prometheus sees no growth from nothing."""

from collections.abc import AsyncGenerator

import httpx
import pytest

from tests.players.openai_player import OpenAIPlayer, whole
from tests.service.observability.reading import figures_of
from tests.serving import service
from toolchat.errors import UpstreamUnavailable
from toolchat.http.client import OutboundHttp

MODEL = "model-of-first-failures"


@pytest.fixture
async def client() -> AsyncGenerator[httpx.AsyncClient, None]:
    async with (
        OpenAIPlayer(lambda _: whole({"error": {"message": "no"}}, 401)) as player,
        service(OPENAI_BASE_URL=player.base_url, OPENAI_MODEL=MODEL) as client,
    ):
        yield client


async def test_all_outcomes_of_a_model_call_are_exported_before_the_first_one(client: httpx.AsyncClient) -> None:
    name = "toolchat_model_turns_total"
    before = await figures_of(client)
    await client.get("/chat", params={"userInput": "hello"})
    after = await figures_of(client)
    by_outcome = {
        dict(labels)["outcome"]: value
        for (each, labels), value in before.items()
        if (name, MODEL) == (each, dict(labels).get("model"))
    }
    assert by_outcome == dict.fromkeys(
        [
            *("upstream-unavailable", "upstream-timeout", "upstream-invalid"),
            *("provider-rate-limited", "provider-auth", "provider-quota"),
        ],
        0,
    )
    failed = (name, (("model", MODEL), ("outcome", "provider-auth"), ("provider", "openai_compatible")))
    assert (before[failed], after[failed]) == (0, 1)


async def test_the_state_of_a_breaker_is_exported_from_the_start(client: httpx.AsyncClient) -> None:
    figures = await figures_of(client)
    told = {name: value for (name, labels), value in figures.items() if MODEL in dict(labels).get("upstream", "")}
    assert told == {
        "toolchat_breaker_open": 0,
        "toolchat_breaker_openings_total": 0,
        "toolchat_breaker_refusals_total": 0,
    }


async def test_the_first_response_of_an_upstream_exports_all_its_outcomes(client: httpx.AsyncClient) -> None:
    http, name = OutboundHttp(), "upstream of first failures"
    try:
        await http.fetch("GET", str(client.base_url.join("/health/live")), upstream=name, timeout=30)
        told = {
            dict(labels)["outcome"]: value
            for (each, labels), value in (await figures_of(client)).items()
            if each == "toolchat_upstream_requests_total" and dict(labels)["upstream"] == name
        }
    finally:
        await http.aclose()
    assert told.pop("200") == 1
    assert {"429", "503", UpstreamUnavailable.code} <= set(told)
    assert set(told.values()) == {0}
