"""The metrics as code, and as the table of ``docs/operations.md`` describes them."""

import re
from typing import NamedTuple

from prometheus_client import Counter, Gauge, Histogram

from tests.command_line import ROOT
from toolchat.service.observability import metrics

__all__ = ["METRICS", "ROWS", "Row"]

METRICS = [each for each in vars(metrics).values() if isinstance(each, Counter | Gauge | Histogram)]


class Row(NamedTuple):
    """A row of the table."""

    name: str
    kind: str
    labels: list[str]
    meaning: str


ROWS = [
    Row(name, kind, re.findall(r"`(\w+)`", labels), meaning)
    for name, kind, labels, meaning in re.findall(
        r"^\| `(toolchat_\w+)` \| (\w+) \| ([^|]*?) *\| ([^|]*) \|$",
        (ROOT / "docs" / "operations.md").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
]
