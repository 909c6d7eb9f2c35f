"""The sandbox: a local fake of the tools' upstream APIs, to try the service without keys and to test it.

It has the upstreams' wire formats and invents all data; each response has the header ``X-Sandbox: toolchat``. The
service reaches it only through ``SANDBOX_URL`` and shares no code with it except :mod:`toolchat.service.gazetteer`.
"""

import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager

import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.sandbox import baidu, weatherapi

_INDEX = """\
<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>toolchat sandbox</title></head>
<body>
<h1>toolchat sandbox</h1>
<p><strong>All data here is invented.</strong> No temperature was measured and no text was translated by anyone.</p>
<p lang="zh">这里的所有数据都是虚构的：天气不是实测的，译文也不是真正的翻译。</p>
<ul>
<li><code>GET /weatherapi/v1/forecast.json</code> imitates WeatherAPI.com</li>
<li><code>POST /baidu/api/trans/vip/translate</code> imitates Baidu's general translation</li>
</ul>
<p>Set <code>SANDBOX_URL</code> to this address and the tools send their requests here; no keys are needed.</p>
</body>
</html>
"""


class SandboxHeader:
    """Adds the header ``X-Sandbox`` to every response, whatever its status."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on and mark its response."""

        async def marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)["X-Sandbox"] = "toolchat"
            await send(message)

        await self._app(scope, receive, marked)


def create_sandbox() -> Starlette:
    """Create the fake of all upstreams; each has its own state."""
    routes = [Route("/", _index), *weatherapi.routes, *baidu.routes]
    return Starlette(routes=routes, middleware=[Middleware(SandboxHeader)])


@contextmanager
def running_sandbox() -> Generator[str, None, None]:
    """Serve a sandbox in its own thread, on a free port of 127.0.0.1; yields its base URL."""
    config = uvicorn.Config(create_sandbox(), log_config=None, access_log=False, lifespan="off")
    config.timeout_graceful_shutdown = 1
    server = uvicorn.Server(config)
    # Bound here, not by uvicorn: the port is known, and accepts connections, before the thread runs.
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=server.run, args=([listener],), name="sandbox", daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(timeout=5)


async def _index(_request: Request) -> HTMLResponse:
    return HTMLResponse(_INDEX)
