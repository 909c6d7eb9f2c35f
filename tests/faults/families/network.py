"""What lies between the service and its provider: a forward proxy, and a name that moves."""

import asyncio
import socket
import ssl
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from tests.faults.fault import fault, held
from tests.faults.service import CANARY, Service
from tests.faults.stage import Stage, installed
from tests.faults.upstream import Upstream
from tests.faults.waiting import until
from tests.http.certificates import Authority

_TINYPROXY = """Port {port}
Listen 127.0.0.1
Timeout 60
LogLevel Connect
LogFile "{folder}/log"
BasicAuth lab {password}
"""
_ELSEWHERE = "0.0.0.0"
"""An address of this machine that is not among those of the loopback: the service uses its proxy for it."""
_WITH_HOSTS = 'mount --bind "$0" /etc/hosts && exec "$@"'


async def _tinyproxy(stage: Stage) -> tuple[str, Path]:
    """Start the proxy; returns its URL with credentials, and its log."""
    port = stage.port()
    folder = stage.folder / f"tinyproxy-{port}"
    folder.mkdir()
    (folder / "conf").write_text(_TINYPROXY.format(port=port, folder=folder, password=CANARY))
    command = [installed("tinyproxy"), "-d", "-c", str(folder / "conf")]
    process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.DEVNULL)
    stage.row.push_async_callback(process.wait)
    stage.row.callback(process.terminate)
    await until(lambda: _listens(port))
    return f"http://lab:{CANARY}@127.0.0.1:{port}", folder / "log"


async def _listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
        return True
    return False


async def _by_proxy(stage: Stage, first_line: str, tls: ssl.SSLContext | None = None, **variables: str) -> float:
    """Ask through the proxy; returns how many requests to the provider its log has."""
    proxy, log = await _tinyproxy(stage)
    upstream = await stage.row.enter_async_context(Upstream(tls=tls))
    url = f"http{'s' if tls else ''}://{_ELSEWHERE}:{upstream.port}/v1"
    proxies = {"HTTP_PROXY": proxy, "HTTPS_PROXY": proxy}
    service = await stage.own(**proxies, **variables, OPENAI_BASE_URL=url, MODEL_MAX_ATTEMPTS="1")
    reply = await service.ask("/time/chat?query=hi")
    held((reply.status, reply.text) == (200, "Hello."), f"answered {reply.outcome}")
    return log.read_text().count(first_line.format(port=upstream.port))


@fault(users="the answer", figure="requests by `CONNECT` in the proxy's log", at_least=1, at_most=1)
async def a_forward_proxy_for_https(stage: Stage) -> float:
    """A provider that speaks TLS is reached by a proxy (tinyproxy) that wants credentials (`HTTPS_PROXY`)."""
    authority = Authority(stage.folder)
    tls = authority.server(_ELSEWHERE)
    return await _by_proxy(stage, f"CONNECT {_ELSEWHERE}:{{port}} ", tls, SSL_CERT_FILE=str(authority.file))


@fault(users="the answer", figure="requests with the whole URL in the proxy's log", at_least=1, at_most=1)
async def a_forward_proxy_for_http(stage: Stage) -> float:
    """A provider without TLS is reached by a proxy (tinyproxy) that wants credentials (`HTTP_PROXY`)."""
    return await _by_proxy(stage, f"POST http://{_ELSEWHERE}:{{port}}/v1/chat/completions ")


@fault(users="502 `upstream-unavailable`, then answers again", figure="s until the first answer", at_most=20)
async def an_upstream_whose_name_moves(stage: Stage) -> float:
    """The provider goes from one address to another, and its name follows; the old address refuses connections."""
    hosts = stage.folder / "hosts"
    hosts.write_text("127.0.0.1 provider.example\n")
    async with Upstream() as first:
        port = first.port
        prefix = (installed("unshare"), "-rm", "sh", "-c", _WITH_HOSTS, str(hosts))
        service = await stage.own(*prefix, OPENAI_BASE_URL=f"http://provider.example:{port}/v1", MODEL_MAX_ATTEMPTS="1")
        held(await _is_answered(service), "the first address is not asked")
    hosts.write_text("127.0.0.2 provider.example\n")
    await stage.row.enter_async_context(Upstream("127.0.0.2", port))
    began = time.monotonic()
    await until(lambda: _is_answered(service))
    return time.monotonic() - began


async def _is_answered(service: Service) -> bool:
    return (await service.ask("/time/chat?query=hi")).status == 200
