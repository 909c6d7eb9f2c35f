"""What ``/metrics`` reports, read by the parser of Prometheus' client library."""

from collections.abc import Mapping

import httpx
from prometheus_client.parser import text_string_to_metric_families

__all__ = ["Figures", "Labels", "figures_of", "grown", "parsed"]

Labels = tuple[tuple[str, str], ...]
Figures = dict[tuple[str, Labels], float]
"""Every sample by its name and its labels, these in the order of their names."""


async def figures_of(client: httpx.AsyncClient) -> Figures:
    """What ``/metrics`` reports now."""
    answer = await client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    return parsed(answer.text)


def grown(before: Figures, after: Figures, name: str) -> Mapping[Labels, float]:
    """By how much the samples of a name have grown; those that have not are left out."""
    both = {labels: value - before.get((each, labels), 0) for (each, labels), value in after.items() if each == name}
    return {labels: value for labels, value in both.items() if value}


def parsed(text: str) -> Figures:
    """All samples of a report."""
    samples = [each for family in text_string_to_metric_families(text) for each in family.samples]
    found = {(each.name, tuple(sorted(each.labels.items()))): each.value for each in samples}
    assert len(found) == len(samples)
    return found
