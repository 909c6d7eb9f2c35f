"""The sandbox of ``make demo``: plays the tools' upstreams with invented data, so that they need no keys."""

import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from app.tools.baidu_translate.invented import invented_translation
from app.tools.weather.invented import invented_forecast


async def forecast(request: Request) -> JSONResponse:
    """Answer as WeatherAPI does."""
    asked = request.query_params
    return JSONResponse(invented_forecast(asked["q"], int(asked["days"]), asked.get("lang") == "zh"))


async def translate(request: Request) -> JSONResponse:
    """Answer as Baidu does."""
    form = {name: str(value) for name, value in (await request.form()).items()}
    lines = [{"src": line, "dst": invented_translation(line, form["to"])} for line in form["q"].split("\n")]
    source = form["from"].replace("auto", "zh" if form["q"] > "㐀" else "en")
    return JSONResponse({"from": source, "to": form["to"], "trans_result": lines})


ROUTES = [
    Route("/weatherapi/v1/forecast.json", forecast),
    Route("/baidu/api/trans/vip/translate", translate, methods=["POST"]),
]


@contextmanager
def running_sandbox() -> Generator[str, None, None]:
    """Serve the sandbox in its own thread, on a free port of 127.0.0.1; yields its base URL."""
    app = Starlette(routes=ROUTES)
    config = uvicorn.Config(app, log_config=None, access_log=False, lifespan="off", timeout_graceful_shutdown=1)
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
