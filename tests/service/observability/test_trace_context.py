"""The trace of the caller, which goes on here and upstream; which traces are recorded; what the log says of them."""

from collections.abc import AsyncGenerator

import httpx
import pytest

from tests.players.dashscope_player import DashScopePlayer, sensible_model
from tests.players.openai_player import OpenAIPlayer
from tests.players.otlp_receiver import OtlpReceiver
from tests.service.observability.reading import figures_of, grown
from tests.service.observability.tracing import PATH, the
from tests.serving import service
from toolchat.service.observability.logs import JsonFormatter

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@pytest.fixture(scope="module")
async def client(receiver: OtlpReceiver, player: OpenAIPlayer) -> AsyncGenerator[httpx.AsyncClient, None]:
    async with service(OPENAI_BASE_URL=player.base_url, **receiver.variables) as client:
        yield client


async def asked(client: httpx.AsyncClient, player: OpenAIPlayer, *headers: tuple[str, str]) -> list[str]:
    """Ask, and give what the model's server was told of the trace."""
    player.requests.clear()
    assert (await client.get(PATH, params={"query": "x"}, headers=list(headers))).status_code == 200
    return [each.headers.get("traceparent", "") for each in player.requests]


async def test_the_callers_trace_goes_on_here_and_in_the_models_server(
    client: httpx.AsyncClient, receiver: OtlpReceiver, player: OpenAIPlayer
) -> None:
    told = await asked(client, player, ("traceparent", f"00-{TRACE}-{PARENT}-01"), ("tracestate", "a=1,b=2"))
    spans = await receiver.trace()
    server, turns = the(spans, "GET"), [each for each in spans if each.name.startswith("chat")]
    assert (server.trace, server.parent, server.state) == (TRACE, PARENT, "a=1,b=2")
    assert [each.flags & 0x200 for each in (server, *turns)] == [0x200, 0, 0]
    assert told == [f"00-{TRACE}-{each.id}-01" for each in turns]
    assert [each.headers["tracestate"] for each in player.requests] == ["a=1,b=2"] * 2


@pytest.mark.parametrize(
    "given",
    [
        f"00-{TRACE}-{PARENT}",
        f"00-{'0' * 32}-{PARENT}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"ff-{TRACE}-{PARENT}-01",
        f"00-{TRACE}-{PARENT}-01-more",
        f"00-{TRACE.upper()}-{PARENT}-01",
        "00",
    ],
)
async def test_a_traceparent_that_is_none_begins_a_trace_of_its_own(
    client: httpx.AsyncClient, receiver: OtlpReceiver, player: OpenAIPlayer, given: str
) -> None:
    await asked(client, player, ("traceparent", given))
    server = the(await receiver.trace(), "GET")
    assert (server.trace == TRACE, server.parent) == (False, "")


async def test_a_traceparent_of_a_later_version_is_read(
    client: httpx.AsyncClient, receiver: OtlpReceiver, player: OpenAIPlayer
) -> None:
    await asked(client, player, ("traceparent", f"01-{TRACE}-{PARENT}-01-more"))
    assert the(await receiver.trace(), "GET").parent == PARENT


async def test_a_trace_that_the_caller_does_not_sample_is_not_recorded_and_sent_as_unsampled(
    client: httpx.AsyncClient, receiver: OtlpReceiver, player: OpenAIPlayer
) -> None:
    told = await asked(client, player, ("traceparent", f"00-{TRACE}-{PARENT}-00"))
    assert [(each[:35], each[-2:], PARENT in each) for each in told] == [(f"00-{TRACE}", "00", False)] * 2
    await asked(client, player)
    assert len(await receiver.trace()) == 5
    assert receiver.spans == []


async def test_log_lines_name_the_trace_and_the_span(
    client: httpx.AsyncClient, receiver: OtlpReceiver, player: OpenAIPlayer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.handler.setFormatter(JsonFormatter())
    caplog.clear()
    await asked(client, player)
    server = the(await receiver.trace(), "GET")
    lines = [each for each in caplog.text.splitlines() if '"toolchat.request"' in each]
    assert len(lines) == 1
    assert f'"trace_id":"{server.trace}","span_id":"{server.id}"' in lines[0]


async def test_a_share_of_the_traces_is_recorded_by_their_ids(player: OpenAIPlayer) -> None:
    sampler = {"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.25"}
    async with (
        OtlpReceiver() as receiver,
        service(OPENAI_BASE_URL=player.base_url, **receiver.variables, **sampler) as client,
    ):
        for number in (0x3FFFFFFFFFFFFFFF, 0x40000000000000000 - 1):
            for flag in ("00", "01"):
                trace = f"{'a' * 16}{number % 2**64:016x}"
                await asked(client, player, ("traceparent", f"00-{trace}-{PARENT}-{flag}"))
    servers = [each for each in receiver.spans if each.kind == "server"]
    assert [each.trace[16:] for each in servers] == ["3fffffffffffffff"] * 2


async def test_without_a_propagator_no_trace_context_is_read_or_sent_and_afterwards_it_is(
    client: httpx.AsyncClient, receiver: OtlpReceiver, player: OpenAIPlayer
) -> None:
    async with OtlpReceiver() as own:
        variables = own.variables | {"OTEL_PROPAGATORS": "none"}
        async with service(OPENAI_BASE_URL=player.base_url, **variables) as without:
            assert await asked(without, player, ("traceparent", f"00-{TRACE}-{PARENT}-01")) == ["", ""]
            assert the(await own.trace(), "GET").trace != TRACE
    assert await asked(client, player, ("traceparent", f"00-{TRACE}-{PARENT}-01")) != ["", ""]
    assert the(await receiver.trace(), "GET").trace == TRACE


async def test_dashscope_receives_the_trace_context_and_is_counted_like_every_upstream(receiver: OtlpReceiver) -> None:
    async with DashScopePlayer(sensible_model({"timeZoneId": "Asia/Tokyo"})) as player:
        settings = {"DASHSCOPE_API_KEY": "sk-0123456789abcdef", "DASHSCOPE_BASE_URL": player.base_url}
        async with service(**settings, **receiver.variables) as client:
            before, headers = await figures_of(client), {"traceparent": f"00-{TRACE}-{PARENT}-01"}
            assert (await client.get(PATH, params={"query": "x"}, headers=headers)).status_code == 200
            turns = [each for each in await receiver.trace() if each.name.startswith("chat")]
            counted = grown(before, await figures_of(client), "toolchat_upstream_requests_total")
    told = [request.headers["traceparent"] for request in player.requests]
    assert told == [f"00-{TRACE}-{turn.id}-01" for turn in turns]
    assert [(dict(key), count) for key, count in counted.items()] == [({"upstream": "DashScope", "outcome": "200"}, 2)]
