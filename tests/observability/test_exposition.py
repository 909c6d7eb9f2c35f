"""What ``/metrics`` reports: names and labels as documented, buckets, and bounds on labels."""

import re

import pytest
from prometheus_client import Counter

from app.observability.metrics import BoundedNames, labelled
from tests.documented_metrics import METRICS, ROWS, Row
from tests.observability.reading import figures_of
from tests.serving import service


def test_the_table_of_the_documentation_names_every_metric() -> None:
    described = []
    for metric in METRICS:
        [family] = metric.describe()
        total = "_total" if family.type == "counter" else ""
        described.append((family.name + total, family.type, family.documentation))
    assert described == [(row.name, row.kind, row.meaning) for row in ROWS]


@pytest.mark.parametrize(("row", "metric"), [pair for pair in zip(ROWS, METRICS, strict=True) if pair[0].labels])
def test_a_metric_has_the_documented_labels(row: Row, metric: Counter) -> None:
    values = [f"of {row.name}"] * len(row.labels)
    metric.labels(**dict(zip(row.labels, values, strict=True)))
    metric.remove(*values)  # other tests read the same metrics


@pytest.mark.parametrize("row", ROWS)
def test_a_name_ends_in_its_unit_or_in_what_it_counts(row: Row) -> None:
    assert row.name.endswith("_total") == (row.kind == "counter")
    assert not re.search(r"_(ms|milliseconds|minutes|kilobytes)\b", row.name)


async def test_times_and_tokens_have_the_bounds_of_the_conventions() -> None:
    async with service(CHAT_PROVIDER="offline") as client:
        await client.get("/chat", params={"userInput": "hello"})
        figures = await figures_of(client)
    bounds: dict[str, set[float]] = {}
    for name, labels in figures:
        if name.endswith("_bucket"):
            bounds.setdefault(name, set()).add(float(dict(labels)["le"]))
    infinity = float("inf")
    assert bounds["toolchat_model_turn_duration_seconds_bucket"] == {*(0.01 * 2**step for step in range(14)), infinity}
    assert bounds["toolchat_model_turn_tokens_bucket"] == {*(4**step for step in range(14)), infinity}


async def test_the_process_and_its_garbage_collections_are_reported_by_the_library() -> None:
    async with service() as client:
        figures = await figures_of(client)
    assert figures["process_resident_memory_bytes", ()] > 1e6
    assert figures["python_gc_collections_total", (("generation", "2"),)] > 0
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
