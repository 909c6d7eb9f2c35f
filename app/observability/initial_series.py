"""Series that exist with the value 0 before their first event.

Prometheus' ``increase()`` and ``rate()`` compare values: they miss the first failure of a series that appears with the
value 1. So the failures that alerts are based on start at 0 as soon as their labels are known.
"""

from collections.abc import Iterable

from app.observability.series import Family
from toolchat.errors import ProviderAuth, ProviderRateLimited, UpstreamInvalid, UpstreamTimeout, UpstreamUnavailable

__all__ = ["PROVIDER_FAILURES", "UPSTREAM_FAILURES", "start_at_zero"]

PROVIDER_FAILURES = tuple(
    error.code for error in (UpstreamUnavailable, UpstreamTimeout, UpstreamInvalid, ProviderRateLimited, ProviderAuth)
)
"""Outcomes of a model call that are the provider's fault."""
UPSTREAM_FAILURES = ("429", "500", "502", "503", "504", UpstreamUnavailable.code, UpstreamTimeout.code)
"""Outcomes of a request that are the upstream's fault."""


def start_at_zero(family: Family, values: Iterable[str], last: Iterable[str]) -> None:
    """Create series of a counter or gauge with the value 0, unless they exist.

    Args:
        family: the metric.
        values: the values of all labels but the last.
        last: values of the last label; each is a series.
    """
    for each in last:
        family.at(*values, each)
