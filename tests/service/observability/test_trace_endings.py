"""Questions that fail, that nobody waits for any more, and collectors that are not there."""

import asyncio
import threading
from collections.abc import AsyncGenerator

import httpx
import pytest

from tests.players.openai_player import OpenAIPlayer
from tests.players.otlp_receiver import OtlpReceiver
from tests.ports import reserved
from tests.service.observability.reading import figures_of
from tests.service.observability.tracing import PATH, the, tree
from tests.serving import events_of, service
from tests.waiting import until

LIMITS = {"MODEL_MAX_ATTEMPTS": "2", "BREAKER_FAILURES": "0"}


def senders() -> set[threading.Thread]:
    return {each for each in threading.enumerate() if each.name.startswith("OtelBatch")}


@pytest.fixture(scope="module")
async def client(receiver: OtlpReceiver, player: OpenAIPlayer) -> AsyncGenerator[httpx.AsyncClient, None]:
    async with service(OPENAI_BASE_URL=player.base_url, **receiver.variables, **LIMITS) as client:
        yield client


async def test_a_model_that_fails_fails_every_span_above_it_and_each_further_try_is_an_event(
    client: httpx.AsyncClient, receiver: OtlpReceiver
) -> None:
    assert (await client.get(PATH, params={"query": "failing"})).status_code == 502
    spans = await receiver.trace()
    assert tree(spans) == [
        f"GET {PATH} (server, failed)",
        "  invoke_agent toolchat (internal, failed)",
        "    chat gpt-4o-mini (client, failed)",
    ]
    assert {each.attributes["error.type"] for each in spans} == {"upstream-unavailable"}
    assert [the(spans, kind).attributes["http.response.status_code"] for kind in ("GET", "chat")] == [502, 500]
    said = ("toolchat.provider", "toolchat.model", "toolchat.upstream_status", "toolchat.retries")
    for each in spans:
        assert [each.attributes.get(name) for name in said] == ["openai_compatible", "gpt-4o-mini", 500, 1]
    assert the(spans, "chat").events == (("retry", {"error.type": "upstream-unavailable"}),)


async def test_a_client_that_leaves_ends_its_spans_as_cancelled(
    client: httpx.AsyncClient, receiver: OtlpReceiver, player: OpenAIPlayer
) -> None:
    player.asked.clear()
    asked = client.get(PATH, params={"query": "silent"}, headers={"Accept": "text/event-stream"})
    leaving = asyncio.create_task(asked)
    await player.asked.wait()
    leaving.cancel()
    spans = await receiver.trace()
    assert tree(spans) == [
        f"GET {PATH} (server, failed)",
        "  invoke_agent toolchat (internal, failed)",
        "    chat gpt-4o-mini (client, failed)",
    ]
    assert the(spans, "chat").attributes["error.type"] == "cancelled"
    assert the(spans, "GET").attributes["error.type"] == "client_gone"


async def test_a_question_that_times_out_is_traced_as_a_timeout_although_its_model_was_cancelled(
    player: OpenAIPlayer,
) -> None:
    async with (
        OtlpReceiver() as receiver,
        service(OPENAI_BASE_URL=player.base_url, REQUEST_TIMEOUT="0.05", **receiver.variables) as client,
    ):
        await client.get(PATH, params={"query": "silent"})
        spans = await receiver.trace()
    kinds = [each.attributes["error.type"] for each in spans]
    assert kinds == ["cancelled", "deadline", "deadline"]


async def test_an_answer_that_is_cut_fails_the_request_though_its_status_is_200(
    client: httpx.AsyncClient, receiver: OtlpReceiver
) -> None:
    answer = await client.get(PATH, params={"query": "cut"}, headers={"Accept": "text/event-stream"})
    assert answer.text.count("event: error") == 1
    spans = await receiver.trace()
    server = the(spans, "GET")
    assert (server.is_error, server.attributes["http.response.status_code"]) == (True, 200)
    assert {each.attributes["error.type"] for each in spans} == {events_of(answer.text)[-1].data["code"]}


async def test_a_refusal_is_the_clients_fault_and_no_failed_request(
    client: httpx.AsyncClient, receiver: OtlpReceiver
) -> None:
    await client.get(PATH, params={"query": " "})
    [span] = await receiver.trace()
    assert not span.is_error
    assert (span.attributes["http.response.status_code"], span.attributes["toolchat.outcome"]) == (422, "validation")


async def test_an_unreachable_collector_is_logged_once_and_delays_no_answer(
    player: OpenAIPlayer, caplog: pytest.LogCaptureFixture
) -> None:
    with reserved() as nobody:
        endpoint = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, "OTEL_BSP_SCHEDULE_DELAY": "1"}
        variables |= {"OTEL_EXPORTER_OTLP_TIMEOUT": "0.01", "SHUTDOWN_TIMEOUT": "1"}
        async with service(OPENAI_BASE_URL=player.base_url, **variables) as client:
            answers = await asyncio.gather(*(client.get(PATH, params={"query": "x"}) for _ in range(20)))
            assert {each.status_code for each in answers} == {200}
            await until(lambda: "traces could not be sent" in caplog.text)
    assert caplog.text.count("traces could not be sent") == 1


async def spans_lost(client: httpx.AsyncClient) -> float:
    return (await figures_of(client))["toolchat_spans_lost_total", ()]


async def test_lost_traces_are_logged_with_the_reason_and_counted(
    player: OpenAIPlayer, caplog: pytest.LogCaptureFixture
) -> None:
    async with (
        OtlpReceiver(status=401) as receiver,
        service(OPENAI_BASE_URL=player.base_url, **receiver.variables) as client,
    ):
        before = await spans_lost(client)
        await client.get(PATH, params={"query": "x"})
        await until(lambda: "traces could not be sent" in caplog.text)
        assert await spans_lost(client) > before
    [line] = [each for each in caplog.records if each.getMessage() == "traces could not be sent"]
    assert "401" in vars(line)["reason"]


async def test_a_silent_collector_delays_the_shutdown_no_longer_than_its_timeout(
    player: OpenAIPlayer, caplog: pytest.LogCaptureFixture
) -> None:
    before = senders()
    with reserved() as silent:
        silent.listen()
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, "OTEL_EXPORTER_OTLP_TIMEOUT": "1"}
        async with service(OPENAI_BASE_URL=player.base_url, SHUTDOWN_TIMEOUT="0", **variables) as client:
            assert (await client.get(PATH, params={"query": "x"})).status_code == 200
    await until(lambda: senders() <= before)
    # The try that was still under way then fails, which is no second message.
    lost = [each.getMessage() for each in caplog.records if each.name == "toolchat.service.observability.span_export"]
    assert lost == ["traces could not be sent"]


async def test_what_has_not_been_sent_is_sent_when_the_service_stops(player: OpenAIPlayer) -> None:
    async with OtlpReceiver() as receiver:
        variables = receiver.variables | {"OTEL_BSP_SCHEDULE_DELAY": "3600000"}
        async with service(OPENAI_BASE_URL=player.base_url, **variables) as client:
            await client.get(PATH, params={"query": "x"})
            assert receiver.spans == []
        assert len(await receiver.trace()) == 5
