"""Series that are told before anything is counted in them.

To Prometheus what was never 0 has not grown: of a series that begins at 1, ``increase()`` and ``rate()`` do not see the
first failure. So the failures that alerts ask for are told as 0 once it is known whose they would be.
"""

from collections.abc import Iterable

from app.observability.series import Family
from toolchat.errors import ProviderAuth, ProviderRateLimited, UpstreamInvalid, UpstreamTimeout, UpstreamUnavailable

__all__ = ["FAILED_ANSWERS", "FAILED_TURNS", "begin"]

FAILED_TURNS = tuple(
    error.code for error in (UpstreamUnavailable, UpstreamTimeout, UpstreamInvalid, ProviderRateLimited, ProviderAuth)
)
"""What may become of a model's turn by the provider's fault."""
FAILED_ANSWERS = ("429", "500", "502", "503", "504", UpstreamUnavailable.code, UpstreamTimeout.code)
"""What may become of a request to an upstream by its fault."""


def begin(family: Family, values: Iterable[str], last: Iterable[str]) -> None:
    """Tell series of a counter or gauge as 0, unless they are told already.

    Args:
        family: what they belong to.
        values: of all labels but the last.
        last: of the last label, one series each.
    """
    for each in last:
        family.at(*values, each)
