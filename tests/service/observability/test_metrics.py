"""What ``/metrics`` reports: names and labels as documented, buckets, examples, bounds, and series from the start."""

from collections.abc import AsyncGenerator

import httpx
import pytest
from prometheus_client import Counter
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from tests.documented_metrics import METRICS, ROWS
from tests.players.openai_player import OpenAIPlayer, whole
from tests.players.otlp_receiver import OtlpReceiver
from tests.service.observability.reading import figures_of, parsed
from tests.service.observability.tracing import PATH
from tests.serving import service
from toolchat.errors import UpstreamUnavailable
from toolchat.http.client import OutboundHttp
from toolchat.service.observability.metrics import BoundedNames, labelled


def test_the_table_of_the_documentation_names_every_metric_and_its_labels() -> None:
    described = []
    for metric in METRICS:
        [family] = metric.describe()
        total = "_total" if family.type == "counter" else ""
        described.append((family.name + total, family.type, family.documentation))
    assert described == [(row.name, row.kind, row.meaning) for row in ROWS]
    for row, metric in zip(ROWS, METRICS, strict=True):
        if row.labels:
            metric.labels(**dict.fromkeys(row.labels, "documented"))  # refuses any other labels
            metric.remove(*["documented"] * len(row.labels))


async def test_a_question_adds_few_series_with_the_bounds_of_the_alerts_and_the_library_reports_the_process() -> None:
    async with service(CHAT_PROVIDER="offline") as client:
        before = await figures_of(client)
        await client.post("/chat/stream", json={"userInput": "hello"})
        figures = await figures_of(client)
    bounds: dict[str, set[float]] = {}
    for name, labels in figures:
        if name.endswith("_bucket"):
            bounds.setdefault(name, set()).add(float(dict(labels)["le"]))
    infinity = float("inf")
    assert bounds["toolchat_question_duration_seconds_bucket"] == {*(0.02 * 4**step for step in range(7)), infinity}
    assert 0.2 in bounds["toolchat_event_loop_lag_seconds_bucket"]
    assert len(figures) - len(before) <= 62  # a report costs some 10 microseconds per series
    assert figures["process_resident_memory_bytes", ()] > 1e6
    assert not any(name.endswith("_created") for name, _ in figures)


def test_combinations_of_labels_beyond_the_limit_are_other_and_none_is_lost() -> None:
    counter = Counter("x_total", "x", ["one", "two"], registry=None)
    for number in range(2010):
        labelled(counter, str(number), "a").inc()
    [family] = counter.collect()
    found = {tuple(each.labels.values()): each.value for each in family.samples}
    assert len(found) == 2001
    assert (found["other", "other"], sum(found.values())) == (10, 2010)


def test_so_many_names_keep_theirs_and_every_further_one_is_other() -> None:
    names = BoundedNames(2)
    assert [names.of(each) for each in ("a", "b", "c", "a", "c")] == ["a", "b", "other", "a", "other"]


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
