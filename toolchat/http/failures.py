"""Why a connection failed, as one entry of a closed list, for operators."""

import errno
import re
import socket
import ssl
from collections.abc import Iterator
from enum import StrEnum

import aiohttp
from aiohttp.http_exceptions import ContentEncodingError
from yarl import URL

from toolchat.errors import Overloaded, ToolchatError, UpstreamInvalid, UpstreamTimeout, UpstreamUnavailable
from toolchat.http.environment import Proxies


class Cause(StrEnum):
    """Why a server could not be reached, or a connection to it was lost."""

    NAME_NOT_FOUND = "name not found"
    REFUSED = "connection refused"
    NO_ROUTE = "no route"
    CONNECT_TIMEOUT = "timed out while connecting"
    TLS = "TLS failed"
    PLAIN_TEXT = "plain text where TLS was expected"
    RESET = "connection reset"
    PROXY = "refused by the proxy"
    NOT_PUBLIC = "the name leads to an address that is not public"


class NotPublic(OSError):
    """An address that is not of the public internet, where only such are allowed."""


_BY_ERRNO = {
    errno.ECONNREFUSED: Cause.REFUSED,
    errno.ETIMEDOUT: Cause.CONNECT_TIMEOUT,
    **dict.fromkeys((errno.ECONNRESET, errno.ECONNABORTED, errno.EPIPE), Cause.RESET),
    **dict.fromkeys((errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN, errno.EADDRNOTAVAIL), Cause.NO_ROUTE),
}
_PLAIN_TEXT = {"WRONG_VERSION_NUMBER", "PACKET_LENGTH_TOO_LONG", "RECORD_LAYER_FAILURE", "UNKNOWN_PROTOCOL"}
"""What OpenSSL says of bytes that are no TLS, by version."""


def describe_failure(error: BaseException, address: str) -> str:
    """Return the cause of an error of any client library, with its reason and an address; empty if it has none."""
    cause = cause_of(error)
    return f"{cause}: {address}" if cause else ""


def address_of(url: URL, proxies: Proxies | None) -> str:
    """Return ``host:port`` and the way to it, if a proxy is set."""
    return f"{url.host_subcomponent}:{url.port} {proxies.route(url) if proxies else ''}".rstrip()


def cause_of(error: BaseException) -> str:
    """Return the cause of an error of any client library, with its reason; empty if no connection failed."""
    # From the innermost: aiohttp's TLS errors are ssl's by class, but have none of their attributes.
    found = next(filter(None, map(_cause_of, reversed(list(_chain(error))))), None)
    if found is None:
        return ""
    cause, reason = found
    return f"{cause} ({reason})" if reason else cause


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _cause_of(error: BaseException) -> tuple[Cause, object] | None:
    match error:
        case aiohttp.ClientHttpProxyError():
            return Cause.PROXY, error.status
        case aiohttp.ClientResponseError() if error.request_info.method == "CONNECT":
            return Cause.PROXY, "it answers with something else than HTTP"
        case aiohttp.ServerDisconnectedError() | ssl.SSLEOFError():
            return Cause.RESET, ""
        case ssl.SSLCertVerificationError():
            return Cause.TLS, error.verify_message.partition(",")[0]
        case ssl.SSLError():
            is_plain = error.reason in _PLAIN_TEXT
            return (Cause.PLAIN_TEXT, "") if is_plain else (Cause.TLS, str(error.reason).replace("_", " ").lower())
        case socket.gaierror():
            return Cause.NAME_NOT_FOUND, (error.strerror or "").lower()
        case TimeoutError():
            return Cause.CONNECT_TIMEOUT, ""
        case OSError():
            return _cause_by_number(error)
    return None


def _cause_by_number(error: OSError) -> tuple[Cause, str] | None:
    if isinstance(error, NotPublic):
        return Cause.NOT_PUBLIC, ""
    # Without a number each address of a host failed in its own way: aiohappyeyeballs tells them in the text.
    numbers = [error.errno] if error.errno else map(int, re.findall(r"\[Errno (\d+)\]", str(error)))
    known = [_BY_ERRNO[number] for number in numbers if number in _BY_ERRNO]
    if error.errno is None and isinstance(error, ConnectionResetError):
        known.append(Cause.RESET)  # asyncio's, if the peer hangs up during the TLS handshake
    return (Cause.REFUSED if Cause.REFUSED in known else known[0], "") if known else None


def upstream_error(
    error: Exception, upstream: str, url: URL | None = None, proxies: Proxies | None = None
) -> ToolchatError:
    """Convert an error of aiohttp; its cause is among the ``log_fields``, which clients do not see."""
    if isinstance(error, ToolchatError):
        return error
    failure = _invalid(error, upstream) or _unavailable(error, upstream)
    if url is None or isinstance(failure, UpstreamInvalid | Overloaded):
        return failure
    address = address_of(url, proxies)
    if isinstance(error, aiohttp.ClientConnectorError) and (error.host, error.port) != (url.host, url.port):
        address = f"{error.host}:{error.port} on the way to {url.host_subcomponent}:{url.port}"
    if cause := describe_failure(error, address):
        failure.log_fields["cause"] = cause
    return failure


def _invalid(error: Exception, upstream: str) -> UpstreamInvalid | None:
    match error:
        case aiohttp.ClientPayloadError(__cause__=ContentEncodingError()):
            return UpstreamInvalid(f"{upstream} sent a body that cannot be decompressed")
        case aiohttp.ClientPayloadError():
            return UpstreamInvalid(f"{upstream} was cut off in the middle of its answer", retryable=True)
        case aiohttp.ClientResponseError() if _cause_of(error) is None:
            return UpstreamInvalid(f"{upstream} sent something that is not a complete HTTP answer")
        case ValueError() | aiohttp.NonHttpUrlClientError() if not isinstance(error, OSError):
            return UpstreamInvalid(f"the request to {upstream} cannot be sent")
    return None


def _unavailable(error: Exception, upstream: str) -> ToolchatError:
    match error:
        case OSError(errno=errno.EMFILE | errno.ENFILE):
            return Overloaded("the service has no open file left for a connection to an upstream", retry_after=1)
        case TimeoutError():
            return UpstreamTimeout(f"{upstream} could not be reached in time")
    is_trusted = not isinstance(error, aiohttp.ClientConnectorCertificateError)
    return UpstreamUnavailable(f"{upstream} could not be reached, or the connection was lost", retryable=is_trusted)
