"""What ``/metrics`` reports: names and labels as documented, buckets, and bounds on labels."""

from prometheus_client import Counter

from tests.documented_metrics import METRICS, ROWS
from tests.service.observability.reading import figures_of
from tests.serving import service
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
