"""The state store in PostgreSQL, shared by several processes: one SQL function checks, reads and writes."""

import asyncio
import re
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from psycopg import AsyncConnection, AsyncRawCursor, Error
from psycopg.abc import PQGen
from psycopg.conninfo import conninfo_to_dict
from psycopg.errors import InvalidSchemaName, UndefinedFunction
from psycopg.waiting import wait_async
from pydantic_core import to_json

from toolchat.errors import ConfigurationError
from toolchat.state.base import Committed, StoredRecord, Write, decoded_key
from toolchat.state.watched import Places, WatchedStateStore

_FORMAT: Final = 1  # that of the tables below
_CONNECTIONS: Final = 8  # a server allows a hundred by default; a commit takes one for less than a millisecond
_BATCH: Final = 100  # values that are deleted, or exported, in one step
_LONG_SECONDS: Final = 10.0  # to create what is missing, or for a step of an export

# OURS is the schema. Keys and lists are bytes, as not every key is valid text; times are seconds since 1970 by the
# server's clock. The function gets the commit as JSON, with numbers that are places in `parts`: locked: how many of the
# first parts are keys that are checked or written; reads: [{k: key, longest: seconds, allowed: [values that it may
# have; 0: none] if it is checked}]; writes: [{k: key, v: value (0: delete), ttl, line, place, lists}].
_CREATE: Final = """
DO $create$ BEGIN
PERFORM pg_advisory_xact_lock(hashtextextended('OURS', 0));  -- another process may do the same
IF to_regprocedure('OURS.format()') IS NOT NULL THEN
  RETURN;
END IF;
IF to_regnamespace('OURS') IS NULL THEN  -- IF NOT EXISTS would need the permission to create one
  CREATE SCHEMA OURS;
END IF;
CREATE TABLE OURS.entries (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, key bytea UNIQUE, value bytea NOT NULL, expires float8 NOT NULL
);
CREATE INDEX ON OURS.entries (expires);
CREATE TABLE OURS.log (
  id bigint REFERENCES OURS.entries ON DELETE CASCADE, place int, line bytea NOT NULL, PRIMARY KEY (id, place)
);
CREATE TABLE OURS.listed (
  id bigint REFERENCES OURS.entries ON DELETE CASCADE, list bytea, written float8 NOT NULL, PRIMARY KEY (id, list)
);
CREATE INDEX ON OURS.listed (list, written);
CREATE FUNCTION OURS.format() RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION OURS.commit(
  task jsonb, parts bytea[], OUT done boolean, OUT deleted int, OUT moment float8, OUT before bytea[]
) LANGUAGE plpgsql AS $commit$
DECLARE
  item record;
  stored bytea;
  entry bigint;
BEGIN
  -- Otherwise what others committed while this waited for a key would not be seen.
  ASSERT current_setting('transaction_isolation') = 'read committed';
  PERFORM pg_advisory_xact_lock(number) FROM (
    SELECT DISTINCT hashtextextended('OURS' || encode(key, 'hex'), 0) AS number
    FROM unnest(parts[:(task->>'locked')::int]) AS key ORDER BY number
  ) AS locks;
  done := true;
  deleted := 0;
  moment := extract(epoch FROM clock_timestamp());
  FOR item IN SELECT * FROM jsonb_to_recordset(task->'reads') AS one (k int, allowed int[], longest float8) LOOP
    SELECT value INTO stored FROM OURS.entries
      WHERE key = parts[item.k] AND expires > moment AND expires <= moment + coalesce(item.longest, 'infinity');
    before := before || ARRAY[stored];
    done := done AND (item.allowed IS NULL OR EXISTS (
      SELECT FROM unnest(item.allowed) AS number WHERE parts[number] IS NOT DISTINCT FROM stored
    ));
  END LOOP;
  FOR item IN SELECT * FROM jsonb_to_recordset(task->'writes')
    AS one (k int, v int, ttl float8, line int, place int, lists int[]) WHERE done LOOP
    WITH gone AS (
      DELETE FROM OURS.entries WHERE key = parts[item.k] AND (item.v = 0 OR expires <= moment) RETURNING expires
    ) SELECT deleted + count(*) INTO deleted FROM gone WHERE expires > moment;
    CONTINUE WHEN item.v = 0;
    INSERT INTO OURS.entries (key, value, expires) VALUES (parts[item.k], parts[item.v], moment + item.ttl)
      ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires = excluded.expires RETURNING id INTO entry;
    IF item.line > 0 THEN
      DELETE FROM OURS.log WHERE id = entry AND place >= item.place;
      INSERT INTO OURS.log VALUES (entry, item.place, parts[item.line]);
    END IF;
    INSERT INTO OURS.listed SELECT entry, parts[number], moment FROM unnest(item.lists) AS number
      ON CONFLICT (id, list) DO UPDATE SET written = excluded.written;
  END LOOP;
END $commit$;
END $create$
"""
_GET: Final = "SELECT value FROM OURS.entries WHERE key = $1 AND expires > extract(epoch FROM now())"
_READ_LOG: Final = """
SELECT line FROM OURS.log JOIN OURS.entries USING (id)
WHERE key = $1 AND place >= $2 AND expires > extract(epoch FROM now()) ORDER BY place LIMIT $3
"""
_LISTED: Final = """
SELECT key, value, written FROM OURS.listed JOIN OURS.entries USING (id)
WHERE list = $1 AND written < $2 AND expires > extract(epoch FROM now()) ORDER BY written DESC LIMIT $3
"""
# By one process at a time; what another one is just writing is left to the next sweep.
_SWEEP: Final = """
WITH expired AS (
  SELECT id FROM OURS.entries WHERE expires <= extract(epoch FROM now())
  AND (SELECT pg_try_advisory_xact_lock(hashtextextended('OURS.sweep', 0))) LIMIT $1 FOR UPDATE SKIP LOCKED
) DELETE FROM OURS.entries USING expired WHERE entries.id = expired.id RETURNING 1
"""
# What expires later was mostly written later: an import of lists puts their keys in this order.
_RECORDS: Final = """
SELECT id, key, value, expires, ARRAY(SELECT list FROM OURS.listed WHERE listed.id = entries.id),
ARRAY(SELECT line FROM OURS.log WHERE log.id = entries.id ORDER BY place) FROM OURS.entries
WHERE (expires, id) > ($1, $2) AND expires > extract(epoch FROM now()) ORDER BY expires, id LIMIT $3
"""
# By the code of an error, or by the words of a connection that was refused, for which libpq has no code.
_REASONS: Final = {
    "wrong password": "^28P01$|password authentication failed|no password supplied",
    "user not admitted": '^28000$|role ".*" does not exist|no pg_hba.conf entry',
    "unknown database": '^3D000$|database ".*" does not exist|no such database',
    "missing permission": "^42501$|permission denied",
    "read-only": "^25006$|session is read-only",
    "default_transaction_isolation is not read committed": "^P0004$",
    "disk full": "^53100$|No space left on device",
    "too many connections": "^53300$|too many (clients|connections)|connection slots are reserved",
    "starting or stopping": "^57P0.$|database system is|recovery mode",
    "name not found": "failed to resolve host|translate host name",
    "connection refused": "Connection refused|No such file or directory",
    "connection lost": "closed the connection|Connection (reset|timed out)|is (lost|closed)|unreachable|No route",
    "TLS failed": "SSL|certificate",
}
_OF_ONE_KEY: Final = "22", "40", "54"  # classes of errors, such as that of a key that is too long for an index
_MISSING: Final = InvalidSchemaName, UndefinedFunction
_OPTIONS: Final[dict[str, Any]] = {"autocommit": True, "prepare_threshold": None, "cursor_factory": AsyncRawCursor}


class _Connection(AsyncConnection[Any]):
    """Is closed when its user is cancelled; psycopg would wait for the server, which may not answer."""

    async def wait(self, gen: PQGen[Any], *_: Any, **__: Any) -> Any:
        try:
            return await wait_async(gen, self.pgconn.socket, _LONG_SECONDS)
        except asyncio.CancelledError:
            self.pgconn.finish()
            raise


class PostgresqlStateStore(WatchedStateStore):
    """A state store in PostgreSQL 12 or newer, which has to be started before it is used.

    It creates its schema and its tables if they are missing. It depends on no session of the server, so that it works
    behind a pooler of transactions, such as PgBouncer.

    Args:
        url: ``postgresql://user:password@host:5432/database``, with the options of libpq.
        schema: the schema of the tables: several deployments can share a database.
        deadline: seconds for one operation.

    Raises:
        ValueError: the URL or the name of the schema is invalid.
    """

    kind = "postgresql"

    def __init__(self, url: str, *, schema: str = "toolchat", deadline: float = 0.5) -> None:
        if not re.fullmatch("[A-Za-z_][A-Za-z0-9_-]{0,62}", schema):
            raise ValueError("the name of a schema has up to 63 letters, digits, - and _")
        super().__init__(_server(url), deadline=deadline, connections=_CONNECTIONS)
        self._url = url
        self._schema = self.namespace = schema
        self._idle = deque[_Connection]()
        self._format = 0  # of the tables in the database; 0: not known to be there

    async def start(self) -> None:
        """Create what is missing, and keep probing the server.

        Raises:
            ConfigurationError: a later version has created the tables.
        """
        await super().start()
        if self._format > _FORMAT:
            raise ConfigurationError(self.cause)

    async def get(self, key: str) -> bytes | None:
        return next((value for [value] in await self._query("get", _GET, _encoded(key))), None)

    async def commit(
        self,
        writes: Sequence[Write],
        *,
        checks: Mapping[str, Sequence[bytes | None]] | None = None,
        reads: Sequence[str] = (),
        longest: float | None = None,
        name: str = "commit",
    ) -> Committed:
        """See :meth:`StateStore.commit`."""
        checks = checks or {}
        parts = Places(*map(_encoded, (*checks, *[each.key for each in writes])))
        task: dict[str, Any] = {"locked": len(parts.values)}
        task["reads"] = [
            {"k": key, "allowed": [0 if each is None else parts.add(each) for each in allowed], "longest": longest}
            for key, allowed in enumerate(checks.values(), 1)
        ]
        task["reads"] += [{"k": parts.add(_encoded(key))} for key in reads]
        task["writes"] = [_written(each, key, parts) for key, each in enumerate(writes, len(checks) + 1)]
        arguments = to_json(task).decode(), parts.values
        [[is_done, deleted, now, found]] = await self._query(name, "SELECT * FROM OURS.commit($1, $2)", *arguments)
        return Committed(is_done, dict(zip((*checks, *reads), found or (), strict=True)), deleted, now)

    async def read_log(self, key: str, start: int = 0, limit: int | None = None) -> list[bytes]:
        return [line for [line] in await self._query("read log", _READ_LOG, _encoded(key), start, limit)]

    async def listed(self, name: str, *, limit: int, before: float | None = None) -> list[tuple[str, bytes, float]]:
        latest = float("inf") if before is None else before
        rows = await self._query("list", _LISTED, _encoded(name), latest, limit)
        return [(decoded_key(key), value, written) for key, value, written in rows]

    async def records(self) -> AsyncIterator[StoredRecord]:
        """See :meth:`StateStore.records`; those that are written meanwhile may come twice."""
        last = 0.0, 0
        while rows := await self._query("export", _RECORDS, *last, _BATCH, seconds=_LONG_SECONDS):
            last = rows[-1][3], rows[-1][0]
            for _, key, value, expires, lists, log in rows:
                if not key.startswith((b"lock:", b"quota:")):
                    yield StoredRecord(decoded_key(key), value, expires, "", tuple(map(decoded_key, lists)), tuple(log))

    async def probe(self) -> None:
        """Do what a turn does, and delete what has expired, in steps between which others can write."""
        if self._format != _FORMAT or not self.available:
            await self._prepare()
        await super().probe()
        while len(await self._query("sweep", _SWEEP, _BATCH)) == _BATCH:
            pass

    async def durability_warning(self) -> str:
        statement = "SELECT current_setting('fsync'), current_setting('synchronous_commit')"
        [[fsync, synchronous_commit]] = await self._query("config", statement)
        if fsync == "off":
            return "it leaves writing to the system, so a crash of its machine may destroy the database: set fsync on"
        if synchronous_commit == "off":
            return "it confirms before it writes, so a crash loses the last changes: set synchronous_commit on"
        return ""

    async def disconnect(self) -> None:
        while self._idle:
            await self._idle.pop().close()

    def reason(self, error: Exception) -> str:
        """The server's refusal in our words, or why the connection failed."""
        if isinstance(error, TimeoutError):
            return "no answer in time"
        found = str(getattr(error, "sqlstate", None) or error)
        known = (reason for reason, words in _REASONS.items() if re.search(words, found))
        return next(known, type(error).__name__)

    def concerns_one_key(self, error: Exception) -> bool:
        """Whether the server refuses what was written, as it would nothing else."""
        return (getattr(error, "sqlstate", None) or "")[:2] in _OF_ONE_KEY

    async def _prepare(self) -> None:
        while not (rows := await self._query("prepare", "SELECT OURS.format()", expected=_MISSING)):
            await self._query("create", _CREATE, seconds=_LONG_SECONDS)
        [[self._format]] = rows
        if self._format > _FORMAT:
            told = f"format {self._format}, this version knows {_FORMAT}"
            self.available = False
            self.cause = f"the schema {self._schema} was created by a later version ({told}): {self._server}"
            raise self._unavailable(self.cause)

    async def _query(
        self, name: str, statement: str, *arguments: Any, seconds: float | None = None, expected: Any = ()
    ) -> list[Any]:
        statement = statement.replace("OURS", f'"{self._schema}"')

        async def execute() -> list[Any]:
            # The connections take turns, so that none lies idle for long and is found dead when it is needed.
            connection = self._idle.popleft() if self._idle else await _Connection.connect(self._url, **_OPTIONS)
            try:
                cursor = await connection.execute(statement, arguments, binary=True)
                return await cursor.fetchall() if cursor.description else []
            finally:
                if not connection.closed:
                    self._idle.append(connection)

        rows: list[Any] = await self.run(name, execute, expected, seconds)
        return rows


def _written(write: Write, key: int, parts: Places) -> dict[str, Any]:
    return {
        "k": key,
        "v": 0 if write.value is None or write.ttl <= 0 else parts.add(write.value),
        "ttl": write.ttl,
        "line": 0 if write.line is None else parts.add(write.line),
        "place": write.place,
        "lists": [parts.add(_encoded(each)) for each in write.lists],
    }


def _encoded(name: str) -> bytes:
    return name.encode(errors="surrogatepass")


def _server(url: str) -> str:
    """The host, the port and the database, for the log: without user and password."""
    try:
        parts, given = urlsplit(url), conninfo_to_dict(url)
    except (Error, ValueError):
        raise ValueError("the URL of PostgreSQL cannot be used") from None
    host, port = str(given.get("host") or "localhost"), str(given.get("port") or 5432)
    # A password with a bare / or ? ends the address: its beginning would pass for a port.
    is_complete = "@" not in parts.path + parts.query and re.fullmatch(r"\d+(,\d+)*", port)
    if parts.scheme not in ("postgres", "postgresql") or not is_complete:
        raise ValueError("the URL of PostgreSQL cannot be used")
    return f"{f'[{host}]' if ':' in host else host}:{port}, database {given.get('dbname') or given.get('user') or ''}"
