"""Traces as examples of the figures: OpenMetrics, where traces are on."""

from prometheus_client.openmetrics.parser import text_string_to_metric_families

from tests.players.otlp_receiver import OtlpReceiver
from tests.service.observability.reading import parsed
from tests.service.observability.tracing import PATH
from tests.serving import service

OPEN_METRICS = {"Accept": "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"}


async def test_a_bucket_names_the_latest_recorded_trace_that_fell_into_it() -> None:
    async with OtlpReceiver() as receiver, service(CHAT_PROVIDER="offline", **receiver.variables) as client:
        await client.get(PATH, params={"query": "What time is it in Tokyo?"})
        [trace] = {each.trace for each in await receiver.trace()}
        answer = await client.get("/metrics", headers=OPEN_METRICS)
        unsampled = {"traceparent": f"00-{'a' * 32}-{'b' * 16}-00"}
        await client.get(PATH, params={"query": "What time is it in Tokyo?"}, headers=unsampled)
        later = await client.get("/metrics", headers=OPEN_METRICS)
        plain = await client.get("/metrics")
    assert answer.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    families = list(text_string_to_metric_families(answer.text))
    found = {
        family.name
        for family in families
        for sample in family.samples
        if sample.exemplar and sample.exemplar.labels == {"trace_id": trace}
    }
    kinds = ("question_duration", "model_turn_duration", "tool_call_duration")
    assert found == {f"toolchat_{each}_seconds" for each in kinds}
    assert ("toolchat_questions", "counter") in {(family.name, family.type) for family in families}
    assert "a" * 32 not in later.text
    assert "# {" not in plain.text
    assert parsed(plain.text)


async def test_openmetrics_is_served_without_traces_as_well() -> None:
    async with service(CHAT_PROVIDER="offline") as client:
        answer = await client.get("/metrics", headers=OPEN_METRICS)
    assert answer.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    assert list(text_string_to_metric_families(answer.text))
