"""An aiohttp session under the rules of everything that goes out, for an SDK that takes nothing else."""

from typing import Any

import aiohttp

from app.errors import Overloaded, UpstreamError, UpstreamInvalid, UpstreamTimeout, UpstreamUnavailable
from app.observation.telling import connection_opened
from app.outbound.responses import MAX_BODY_BYTES
from app.outbound.shortage import shortage

__all__ = ["as_upstream_error", "connections_of", "open_session"]


def open_session(connect_timeout: float, max_connections: int) -> aiohttp.ClientSession:
    """Open a session: redirects are refused, cookies not kept, bodies bounded, neither proxies nor ``.netrc`` read."""
    return aiohttp.ClientSession(
        connector=_CountingConnector(limit=max_connections, ttl_dns_cache=300, keepalive_timeout=30),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=connect_timeout),
        response_class=_GuardedResponse,
        cookie_jar=aiohttp.DummyCookieJar(),
        read_bufsize=2**20,
    )


def connections_of(session: aiohttp.ClientSession) -> int:
    """How many connections are open, in use or not."""
    return session.connector.count if isinstance(session.connector, _CountingConnector) else 0


def as_upstream_error(error: BaseException, upstream: str) -> UpstreamError | Overloaded:
    """Put a failure of aiohttp into our words; the text of the original never reaches a client."""
    if isinstance(error, UpstreamError):
        return error
    if isinstance(error, OSError) and (ours := shortage(getattr(error, "os_error", error))):
        return ours
    if isinstance(error, TimeoutError):
        return UpstreamTimeout(f"{upstream} could not be reached in time")
    if isinstance(error, OSError | aiohttp.ClientConnectionError) and not isinstance(error, aiohttp.InvalidURL):
        return UpstreamUnavailable(f"{upstream} could not be reached, or the connection was lost")
    if isinstance(error, aiohttp.ClientPayloadError):
        return UpstreamInvalid(f"{upstream} was cut off in the middle of its answer", retryable=True)
    return UpstreamInvalid(f"{upstream} sent something that is not a complete HTTP answer")


class _GuardedResponse(aiohttp.ClientResponse):
    """Every response of the session, held to the rules whoever sent the request.

    A class costs nothing per request; aiohttp's own middleware costs 20 µs. aiohttp discourages deriving from its
    classes and offers no other place before the body is read.
    """

    async def start(self, connection: object) -> aiohttp.ClientResponse:
        await super().start(connection)  # type: ignore[arg-type]
        if 300 <= self.status < 400:
            raise UpstreamInvalid("the upstream answered with a redirect, which is never followed")
        return self

    async def read(self) -> bytes:
        if self._body is None:
            try:
                self._body = await self._whole()
            except BaseException:
                self.close()
                raise
        return await super().read()

    async def _whole(self) -> bytes:
        pieces = bytearray()
        while piece := await self.content.readany():
            pieces += piece
            if len(pieces) > MAX_BODY_BYTES:
                raise UpstreamInvalid(f"the upstream sent more than {MAX_BODY_BYTES} bytes")
        return bytes(pieces)


class _CountingConnector(aiohttp.TCPConnector):
    """Tells of the connections that it opens; aiohttp's own way to hear of them costs something at every request."""

    @property
    def count(self) -> int:
        # aiohttp counts them for its own limit, and shows nobody.
        return len(self._acquired) + sum(map(len, self._conns.values()))

    async def _create_connection(self, *asked: Any) -> Any:
        created = await super()._create_connection(*asked)
        connection_opened()
        return created
