"""Traces as examples of the figures: OpenMetrics, where traces are on."""

import re

from tests.observability.reading import parsed
from tests.observability.tracing import PATH
from tests.players.otlp_receiver import OtlpReceiver
from tests.serving import service

OPEN_METRICS = {"Accept": "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"}
_EXAMPLE = re.compile(r'^(\w+)_bucket\{.*\} \d+ # \{trace_id="([0-9a-f]{32})"\} [\d.e-]+$', re.MULTILINE)


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
    found = {name for name, example in _EXAMPLE.findall(answer.text) if example == trace}
    kinds = ("question_duration", "model_turn_duration", "tool_call_duration")
    assert found == {f"toolchat_{each}_seconds" for each in kinds}
    assert answer.text.endswith("\n# EOF\n")
    assert "# TYPE toolchat_questions counter\n" in answer.text
    assert "\ntoolchat_questions_total{" in answer.text
    assert "a" * 32 not in later.text
    assert "# {" not in plain.text
    assert parsed(plain.text)


async def test_where_traces_are_off_figures_have_one_format() -> None:
    async with service(CHAT_PROVIDER="offline") as client:
        answer = await client.get("/metrics", headers=OPEN_METRICS)
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
