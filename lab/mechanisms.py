"""The mechanisms that the rows claim to test: how each is taken out of the code, and the rows that must fail then."""

from dataclasses import dataclass
from pathlib import Path

__all__ = ["MECHANISMS", "Mechanism"]


@dataclass(frozen=True)
class Mechanism:
    """A mechanism, and the text of the code that takes it out."""

    name: str
    file: str
    code: str
    """Occurs once in the file."""
    without: str
    rows: tuple[str, ...]
    """All of them must fail."""

    def remove_from(self, root: Path) -> None:
        """Take the mechanism out of a copy of the code.

        Raises:
            ValueError: the code has changed, so that the text is not there, or not once.
        """
        path = root / self.file
        text = path.read_text(encoding="utf-8")
        if text.count(self.code) != 1:
            raise ValueError(f"{self.name}: the text is {text.count(self.code)} times in {self.file}")
        path.write_text(text.replace(self.code, self.without), encoding="utf-8")


_REDIS, _LOCKS, _IDEMPOTENCY = "toolchat/state/redis.py", "toolchat/state/locks.py", "app/api/idempotency.py"
_POOL, _RESPONSES = "toolchat/http/pool.py", "toolchat/http/responses.py"

MECHANISMS: tuple[Mechanism, ...] = (
    Mechanism(
        "the fence of a session: a late turn is not stored",
        _REDIS,
        """\
if token_of(KEYS[1]) > tonumber(ARGV[1]) then return 0 end
redis.call('SET', KEYS[3], ARGV[2], 'PX', ARGV[3])
redis.call('DEL', KEYS[2])""",
        "redis.call('SET', KEYS[3], ARGV[2], 'PX', ARGV[3])\nredis.call('DEL', KEYS[2])",
        ("a-replica-stopped-beyond-its-lock",),
    ),
    Mechanism(
        "the lock of a session across replicas",
        _REDIS,
        "ARGV[3], 'NX', 'PX', ARGV[1])",
        "ARGV[3], 'PX', ARGV[1])",
        ("one-session-by-many-at-once",),
    ),
    Mechanism(
        "turns of clients in the queue of a session",
        _LOCKS,
        "self.waiting.setdefault(client_key, deque())",
        "self.waiting.setdefault('', deque())",
        ("a-stranger-floods-a-session",),
    ),
    Mechanism(
        "the limit of the wait for a session",
        _LOCKS,
        "async with asyncio.timeout_at(deadline):",
        "if turn:",
        ("waiting-for-one-session",),
    ),
    Mechanism(
        "the renewal of a lock",
        _LOCKS,
        "self._run_shielded(self._renew(queue, lock))",
        "pass",
        ("a-turn-longer-than-its-lock",),
    ),
    Mechanism(
        "the fence of an idempotency key",
        _REDIS,
        """\
if token_of(KEYS[1]) > tonumber(ARGV[1]) then return 0 end
redis.call('SET', KEYS[3], ARGV[2], 'PX', ARGV[3])
return 1""",
        "redis.call('SET', KEYS[3], ARGV[2], 'PX', ARGV[3])\nreturn 1",
        ("a-replica-stopped-before-it-claims-a-key",),
    ),
    Mechanism(
        "the lock of an idempotency key",
        _IDEMPOTENCY,
        "self._locks.hold(_key(idempotent))",
        "self._locks.hold(f'{_key(idempotent)}{id(stack)}')",
        ("one-key-at-two-replicas",),
    ),
    Mechanism(
        "the record that a request with a key has started",
        _IDEMPOTENCY,
        "            await self._store.save(self._idempotent, lock)\n",
        "            pass\n",
        ("a-key-whose-replica-died",),
    ),
    Mechanism(
        "the stored answer of an idempotency key",
        _IDEMPOTENCY,
        "return ChatResponse(*entry.answer) if entry.answer else None",
        "return None",
        ("one-key-fifty-times", "one-key-at-two-replicas"),
    ),
    Mechanism(
        "the claim of an approval",
        "app/api/approvals.py",
        "if not claimed:",
        "if False:",
        ("one-approval-at-two-replicas",),
    ),
)
