"""The metrics as code, and as the table of ``docs/monitoring.md`` describes them."""

import re
from typing import NamedTuple

from prometheus_client import Counter, Gauge, Histogram, Summary

from tests.command_line import ROOT
from toolchat.service.observability import metrics

METRICS = [each for each in vars(metrics).values() if isinstance(each, Counter | Gauge | Histogram | Summary)]


class Row(NamedTuple):
    """A row of the table."""

    name: str
    labels: list[str]
    meaning: str

    @property
    def kind(self) -> str:
        """By the name, as the page says."""
        kinds = {"_total": "counter", "_seconds": "histogram", "_turn_tokens": "summary"}
        return next((kind for ending, kind in kinds.items() if self.name.endswith(ending)), "gauge")


ROWS = [
    Row(name, re.findall(r"`(\w+)`", labels), meaning)
    for name, labels, meaning in re.findall(
        r"^\| `(toolchat_\w+)` \| ([^|]*?) *\| ([^|]*) \|$",
        (ROOT / "docs" / "monitoring.md").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
]
