"""What a full SQLite store evicts: the oldest values of the clients that have the most."""

import heapq
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final, NamedTuple

_SHARES_OF_KIND: Final = """
SELECT kind, client, count(*), sum(size), max(id) FROM entries
WHERE kind = ? GROUP BY client ORDER BY count(*) DESC, max(id) LIMIT ?
"""
_SHARES_OF_LARGEST: Final = """
SELECT kind, client, count(*), sum(size), max(id) FROM entries
WHERE client IN (SELECT client FROM entries GROUP BY client ORDER BY sum(size) DESC, max(id) LIMIT ?)
GROUP BY client, kind
"""
_DELETE_OLDEST: Final = """
DELETE FROM entries WHERE id = (SELECT min(id) FROM entries WHERE kind = ? AND client = ?) RETURNING size
"""
_MANY_CLIENTS: Final = 1000
"""Clients that lose bytes at most; those with the most of them."""


class Space(NamedTuple):
    """What can still be stored."""

    entries: int
    """Of the kind that has the most."""
    size: int
    """Bytes."""


def evict(database: sqlite3.Connection, max_entries: int, max_bytes: int) -> Space:
    """Bring a store without expired values within its limits; those of entries hold for each kind."""

    def shares(statement: str, *arguments: object) -> list[_Share]:
        return [_Share(*row) for row in database.execute(statement, arguments)]

    def delete_oldest(share: _Share) -> None:
        [(size,)] = database.execute(_DELETE_OLDEST, (share.kind, share.client_key)).fetchall()
        share.number -= 1
        share.size -= size

    entries = max_entries
    for kind, number in database.execute("SELECT kind, count(*) FROM entries GROUP BY kind").fetchall():
        if (excess := _excess(number, max_entries)) > 0:
            largest = [[each] for each in shares(_SHARES_OF_KIND, kind, excess)]
            _evict(largest, excess, lambda share: share.number, delete_oldest)
        entries = min(entries, max_entries - number + excess)
    [size] = database.execute("SELECT coalesce(sum(size), 0) FROM entries").fetchone()
    if (excess := _excess(size, max_bytes)) > 0:
        by_client = groupby(shares(_SHARES_OF_LARGEST, _MANY_CLIENTS), key=lambda share: share.client_key)
        _evict([list(each) for _, each in by_client], excess, lambda share: share.size, delete_oldest)
    return Space(entries, max_bytes - size + excess)


def _excess(amount: int, limit: int) -> int:
    """What has to be deleted, and a hundredth more, since counting takes some milliseconds if much is stored."""
    return amount - limit + limit // 100 if amount > limit else 0


@dataclass(slots=True)
class _Share:
    """The values of one kind that one client has stored."""

    kind: str
    client_key: str
    number: int
    size: int
    """Bytes."""
    newest: int
    """Orders shares by their last write."""


def _evict(
    clients: Iterable[Sequence[_Share]],
    excess: int,
    amount: Callable[[_Share], int],
    delete_oldest: Callable[[_Share], None],
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


def _rank(shares: Sequence[_Share], amount: Callable[[_Share], int]) -> tuple[int, int, Sequence[_Share]]:
    return -sum(map(amount, shares)), max(each.newest for each in shares), shares
