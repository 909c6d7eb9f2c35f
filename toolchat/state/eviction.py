"""What a full store evicts: the oldest values of the clients that have the most."""

import heapq
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

__all__ = ["Share", "evict"]


@dataclass(slots=True)
class Share:
    """The values of one kind that one client has stored."""

    kind: str
    client_key: str
    number: int
    size: int
    """Bytes."""
    newest: int
    """Orders shares by their last write."""


def evict(
    clients: Iterable[Sequence[Share]],
    excess: int,
    amount: Callable[[Share], int],
    delete_oldest: Callable[[Share], None],
) -> None:
    """Delete values until an amount of them is gone, each from the client that has the most at that time.

    Of clients with equally much, the one that has not written for longest loses a value; of its kinds, the largest.

    Args:
        clients: the shares of each client that may lose something.
        excess: what has to go.
        amount: how much of it a share has: its number of values, or its bytes.
        delete_oldest: deletes the oldest value of a share and updates the share.
    """
    ranked = [_rank(shares, amount) for shares in clients]
    heapq.heapify(ranked)
    while excess > 0:
        *_, shares = ranked[0]
        largest = max(shares, key=amount)
        before = amount(largest)
        delete_oldest(largest)
        excess -= before - amount(largest)
        heapq.heapreplace(ranked, _rank(shares, amount))


def _rank(shares: Sequence[Share], amount: Callable[[Share], int]) -> tuple[int, int, Sequence[Share]]:
    return -sum(map(amount, shares)), max(each.newest for each in shares), shares
