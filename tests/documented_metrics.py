"""The metrics as code, and as the table of ``docs/monitoring.md`` describes them."""

import re
from typing import NamedTuple

from prometheus_client import Counter, Gauge, Histogram

from tests.command_line import ROOT
from toolchat.service.observability import metrics

METRICS = [each for each in vars(metrics).values() if isinstance(each, Counter | Gauge | Histogram)]


class Row(NamedTuple):
    """A row of the table."""

    name: str
    labels: list[str]
    meaning: str

    @property
    def kind(self) -> str:
        """By the name, as the page says."""
        if self.name.endswith("_total"):
            return "counter"
        return "histogram" if self.name.endswith(("_seconds", "_turn_tokens")) else "gauge"


ROWS = [
    Row(name, re.findall(r"`(\w+)`", labels), meaning)
    for name, labels, meaning in re.findall(
        r"^\| `(toolchat_\w+)` \| ([^|]*?) *\| ([^|]*) \|$",
        (ROOT / "docs" / "monitoring.md").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
]
