"""What `docs/comparison.md` shows of a run; it stands there between comments that name it."""

import re

from benchmarks.catalogue import LIMIT, SERVICES
from benchmarks.report import costs_table, where
from benchmarks.run import Run
from benchmarks.summary import summarise

__all__ = ["compared"]

_BESIDE_SPRING = ("toolchat", "toolchat-dashscope", "spring", "spring-virtual", LIMIT)
_WITHOUT = "The kept run was made without Java: Spring AI was not measured in it."


def compared(page: str, run: Run) -> str:
    """Put a run's figures into the page.

    Raises:
        ValueError: a place for figures is not on the page.
    """
    summary = summarise(run.samples)
    services = [SERVICES[name] for name in _BESIDE_SPRING if name in run.services]
    frameworks = [
        SERVICES[name] for name in run.services if SERVICES[name].kind == "framework" or name in ("toolchat", LIMIT)
    ]
    has_spring = any(each.kind == "spring" for each in services)
    blocks = {
        "Spring AI": costs_table(summary, services) if has_spring else _WITHOUT,
        "agent frameworks": f"{costs_table(summary, frameworks)}\n\n{where(run)}",
    }
    for name, block in blocks.items():
        place = re.compile(f"(?<=<!-- {name} -->\n)[^<]*(?=<!-- end -->)")
        page, found = place.subn(f"\n{block}\n\n".replace("\\", r"\\"), page)
        if not found:
            raise ValueError(f"no place for {name}")
    return page
