"""toolchat set up or asked otherwise than by default: with sessions, keys, quotas or traces."""

import hashlib
import shutil
from collections import Counter
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from benchmarks.catalogue import SERVICES, Service
from benchmarks.load import Question, question
from benchmarks.processes import free_port
from benchmarks.stage import BenchError, Stage
from tests.players.postgresql_server import PostgresqlServer

__all__ = [
    "MEMORY",
    "PLAIN",
    "Variant",
    "file_store",
    "guarded",
    "in_session",
    "plain",
    "postgresql_store",
    "redis_store",
    "session",
    "streamed",
    "traced",
]


PLAIN = "/time/chat-tool-function"
MEMORY: Mapping[str, str] = {"STATE_URL": "memory://"}
_CHAT = "/chat?tools=getCityTimeFunction"
_KEY = "bench-key"
_KEYS = """[[keys]]
name = "bench"
sha256 = "%s"
requests_per_minute = 10_000_000
concurrent = 2_000
tokens_per_day = 1_000_000_000_000
"""


@dataclass(frozen=True, slots=True)
class Variant:
    """A service that is set up otherwise than by default, or asked otherwise."""

    name: str
    make: Question
    more: Mapping[str, str]
    service: Service = SERVICES["toolchat"]
    first: str = PLAIN
    questions: int = 0
    pace: tuple[float, float] = (0, 0)
    turns: int = 0
    """What each session must have before anything is measured."""

    def environment(self, port: int, upstream: str) -> Mapping[str, str]:
        """The variables that it needs; see :meth:`Service.environment`."""
        return {**self.service.environment(port, upstream), **self.more}


def plain() -> Variant:
    """The time route: ``/chat`` opens a session also where none is named."""
    return Variant("toolchat", question(PLAIN), {})


def in_session(turns: int) -> Question:
    """Ask in the session of a connection, which grows to so many turns and keeps them; 0: in a new one each time."""
    asked = Counter[int]()

    def make(number: int, slot: int) -> bytes:
        asked[slot] += 1
        where = f"bench{slot}&replaceTurns={int(asked[slot] > turns)}" if turns else f"bench{number}"
        return question(f"{_CHAT}&sessionId={where}", parameter="userInput")(number, slot)

    return make


def session(name: str, store: Mapping[str, str], turns: int = 0) -> Variant:
    """Each question opens a session of its own, or is asked in one that has so many turns."""
    return Variant(name, in_session(turns), store, turns=turns)


def guarded(name: str, stage: Stage, store: Mapping[str, str]) -> Variant:
    """With a key that has quotas, and quotas of all together; figures for /metrics are always kept."""
    keys = stage.folder / "keys.toml"
    keys.write_text(_KEYS % hashlib.sha256(_KEY.encode()).hexdigest())
    settings = {"API_KEYS_FILE": str(keys), "REQUESTS_PER_MINUTE": "10000000", "TOKENS_PER_DAY": "1000000000000"}
    settings |= {"ALLOW_ANONYMOUS": "true"}  # the first question, which tells that it has started, brings no key
    asked = question(PLAIN, "text/plain", "query", f"Authorization: Bearer {_KEY}")
    return Variant(name, asked, {**settings, **store})


def traced(name: str, stage: Stage, share: float, **more: str) -> Variant:
    """Traces of which a share is sampled; ``more`` are further variables of OpenTelemetry."""
    settings = {"OTEL_EXPORTER_OTLP_ENDPOINT": stage.upstream, "OTEL_TRACES_SAMPLER": "parentbased_traceidratio"}
    return Variant(name, question(PLAIN), {**settings, "OTEL_TRACES_SAMPLER_ARG": str(share), **more})


def streamed(service: str) -> Variant:
    """A streamed answer of a service; the model's pieces are so far apart that each is read by itself."""
    asked = question(PLAIN, "text/event-stream")
    return Variant(f"stream of {service}", asked, {}, SERVICES[service], questions=8, pace=(0.02, 0.01))


def file_store(stage: Stage) -> Mapping[str, str]:
    """The state in a file of the stage's folder."""
    return {"STATE_URL": f"sqlite:///{stage.folder.resolve() / 'state.db'}"}


@contextmanager
def postgresql_store() -> Generator[Mapping[str, str], None, None]:
    """The state in a PostgreSQL that runs until the block ends."""
    with PostgresqlServer() as server:
        yield {"STATE_URL": server.url}


@contextmanager
def redis_store(stage: Stage) -> Generator[Mapping[str, str], None, None]:
    """The state in a Redis that runs until the block ends; raises ``BenchError`` without one."""
    program = shutil.which("redis-server") or shutil.which("valkey-server")
    if not program:
        raise BenchError("redis-server is not there")
    port = free_port()
    with stage.helped([program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]):
        yield {"REDIS_URL": f"redis://127.0.0.1:{port}/0"}
