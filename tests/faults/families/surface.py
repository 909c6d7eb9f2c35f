"""What browsers, proxies and readers of logs get to see."""

import asyncio
import json
import subprocess
import time
from typing import Any

from tests.faults.fault import fault, held
from tests.faults.service import CANARY, Service
from tests.faults.stage import Stage, installed
from tests.faults.upstream import frozen, playing, speaking
from tests.faults.waiting import until
from tests.faults.wire import Reply, ask, exchange, opened, percentile, question
from tests.players.openai_player import Answer

_STREAM = {"Accept": "text/event-stream"}
_SHORT = {"MODEL_TIMEOUT": "1", "MODEL_MAX_ATTEMPTS": "1"}


async def _routes(service: Service) -> dict[str, dict[str, Any]]:
    paths: dict[str, dict[str, Any]] = (await service.ask("/openapi.json")).json()["paths"]
    return paths


def _filled(path: str) -> str:
    parts = ["x1" if part.startswith("{") else part for part in path.split("/")]
    return "/".join(parts)


@fault(users="405 with `Allow`, or nothing", figure="questions to the model", at_most=0, fast=True)
async def other_methods_ask_nothing(stage: Stage) -> float:
    """HEAD, OPTIONS, TRACE, PUT and PATCH on every route."""
    service = await stage.service()
    replies = []
    for path in await _routes(service):
        replies += [await service.ask(_filled(path), method=each) for each in ("OPTIONS", "TRACE", "PUT", "PATCH")]
        async with opened(service.port) as (reader, writer):
            writer.write(question(_filled(path), method="HEAD"))
            await reader.read(-1)
    wrong = [each for each in replies if each.status == 405 and "allow" not in each.headers]
    held(not wrong, f"{len(wrong)} answers of 405 without Allow")
    held(all(each.status < 500 for each in replies), "one was answered 5xx")
    stage.note = f"{len(replies)} requests"
    return len(stage.upstream.calls)


@fault(users="the page cannot read the answer", figure="answers that allow another origin", at_most=0, fast=True)
async def foreign_origins(stage: Stage) -> float:
    """Preflights and questions of four foreign origins, `null` among them, to six routes."""
    service = await stage.service()
    allowed = 0
    for origin in ("http://evil.example", "null", "http://127.0.0.1.evil.example", "https://localhost.evil.example"):
        for path in ("/", "/chat", "/time/chat", "/mcp", "/v1/chat/completions", "/tools/rollDice"):
            wants = {"Origin": origin, "Access-Control-Request-Method": "POST"}
            for method in ("OPTIONS", "GET"):
                reply = await service.ask(path, method=method, headers=wants)
                allowed += "access-control-allow-origin" in reply.headers
    return allowed


@fault(users="a problem document", figure="failures that are none, of all that were provoked", at_most=0, fast=True)
async def every_failure_is_a_problem_document(stage: Stage) -> float:
    """Sixty requests that fail for want of a path, a method, a body, a question, a tool or a session."""
    service = await stage.service()
    replies = []
    for path in await _routes(service):
        for method, body in (("GET", b""), ("POST", b"{"), ("DELETE", b"")):
            path_ = f"{_filled(path)}?nonsense=1"
            headers = {"Content-Type": "application/json"} if body else {}
            replies.append(await exchange(service.port, question(path_, method=method, body=body, headers=headers)))
    replies.append(await service.ask("/nowhere"))
    failed = [each for each in replies if each.status >= 400]
    stage.note = f"{len(failed)} failures"
    return sum(not _is_problem(each) for each in failed)


def _is_problem(reply: Reply) -> bool:
    kind = reply.headers.get("content-type", "")
    if kind.startswith("text/plain"):
        return b"/ai-sdk/" in reply.body or b"JSON" in reply.body  # useChat shows the text of a failure as it is
    return bool(reply.code) if kind.startswith("application/problem+json") else "error" in reply.json()


@fault(users="nothing", figure="times that the provider's key is seen", at_most=0, fast=True)
async def keys_are_never_told(stage: Stage) -> float:
    """At `LOG_LEVEL=DEBUG` the provider fails in eight ways, some of which echo the key; all answers and the log."""
    service = await stage.service(LOG_LEVEL="DEBUG", **_SHORT)
    echo = json.dumps({"error": {"message": f"bad key {CANARY}", "code": CANARY, "type": CANARY}}).encode()
    failures = [playing(Answer([echo], status)) for status in (400, 401, 403, 429, 500)]
    failures += [playing(Answer([CANARY.encode()], ending="reset")), playing(Answer([CANARY.encode()])), frozen]
    seen = ""
    for behave in failures:
        stage.upstream.behave = behave
        for headers in ({}, _STREAM):
            seen += (await service.ask("/time/chat?query=hi", headers=headers)).text
    for path in ("/", "/metrics", "/openapi.json", "/health/ready", "/tools"):
        seen += (await service.ask(path)).text
    return (seen + service.written()).count(CANARY)


@fault(users="nothing", figure="words of users in the log", at_most=0, fast=True)
async def prompts_are_not_logged(stage: Stage) -> float:
    """Questions, answers and session ids with a word of their own, that go well and that fail."""
    service = await stage.service(**_SHORT)
    word = "zanzibar4711"
    begin = service.log.stat().st_size
    stage.upstream.behave = speaking(lambda _: word)
    for path in (f"/time/chat?query={word}", f"/chat?userInput={word}&sessionId={word}", f"/chat/{word}"):
        await service.ask(path)
        await service.ask(path, headers=_STREAM)
    stage.upstream.behave = playing(Answer([word.encode()], 500))
    await service.ask(f"/chat?userInput={word}&sessionId={word}")
    await asyncio.sleep(0.2)
    return service.written(begin).count(word)


_TEXTS = (
    "\n", "\r\n", "data: x", "\n\nevent: done\ndata: {}\n\n", "[DONE]", "\u2028", "\u0085", "\x00", "𝄞", "e\u0301",
    "\ufeff", "<script>", "\\", '"', "\x1b[31m", "שלום", ": comment", "id: 1", "retry: 1", "\x7f",
)  # fmt: skip


@fault(users="exactly that text", figure="texts that came otherwise, of 400", at_most=0, fast=True)
async def hostile_texts_come_whole(stage: Stage) -> float:
    """The model says texts with line breaks, forged events, separators, controls; asked for in JSON and as events."""
    service = await stage.service()
    draw, wrong = stage.random(), 0
    for _ in range(200):
        text = "a" + "".join(draw.choice(_TEXTS) for _ in range(draw.randrange(1, 6))) + "b"
        stage.upstream.behave = speaking(lambda _, text=text: text, pieces=draw.randrange(1, 6))  # type: ignore[misc]
        whole = (await service.ask("/time/chat?query=hi", headers={"Accept": "application/json"})).json()
        events = (await service.ask("/time/chat?query=hi", headers=_STREAM)).events
        pieces = "".join(data["text"] for name, data in events if name == "delta")
        wrong += (whole["answer"] != text) + (pieces != text or events[-1][0] != "done")
    return wrong


@fault(users="nothing", figure="series more than before", at_most=12)
async def figures_stay_bounded(stage: Stage) -> float:
    """1,000 paths, 300 sessions and 300 tools that nobody has heard of; then `/metrics`."""
    service = await stage.service()
    await service.ask("/nowhere")
    await service.ask("/chat?userInput=hi")
    before = len((await service.ask("/metrics")).text.splitlines())
    for number in range(1000):
        await service.ask(f"/unknown-{number}")
    for number in range(300):
        await service.ask("/chat?userInput=hi", session=stage.name())
        await service.ask(f"/tools/invented-{number}", json_body={})
    return len((await service.ask("/metrics")).text.splitlines()) - before


@fault(users="refused", figure="ms until refused", at_most=2000)
async def a_web_socket(stage: Stage) -> float:
    """An upgrade to a web socket on the chat's route."""
    service = await stage.service()
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
               "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}  # fmt: skip
    reply = await service.ask("/chat?userInput=", headers=upgrade)
    held(400 <= reply.status < 500, f"answered {reply.status}")
    return reply.seconds * 1000


_NGINX = """\
user root; daemon off; pid {folder}/pid; error_log stderr; events {{ }}
http {{ access_log off; client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder};
uwsgi_temp_path {folder}; scgi_temp_path {folder};
proxy_cache_path {folder}/cache keys_zone=z:1m; upstream toolchat {{ server 127.0.0.1:{target}; keepalive 8; }}
server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://toolchat; proxy_set_header Host $host;
proxy_http_version 1.1; proxy_set_header Connection ""; proxy_cache z; proxy_cache_methods GET HEAD;
proxy_cache_valid any 1m; }} }} }}
"""


async def _nginx(stage: Stage, service: Service) -> int:
    port = stage.port()
    folder = stage.folder / f"nginx-{port}"
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    (folder / "conf").write_text(_NGINX.format(folder=folder, port=port, target=service.port))
    log = stage.row.enter_context((folder / "log").open("ab"))
    command = [installed("nginx"), "-c", str(folder / "conf")]
    process = await asyncio.create_subprocess_exec(*command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    stage.row.push_async_callback(process.wait)
    stage.row.callback(process.terminate)

    async def listens() -> bool:
        try:
            return (await ask(port, "/health/live")).status == 200
        except OSError:
            return False

    await until(listens)
    return port


@fault(users="tokens come one by one", figure="ms later than without it, the first piece in the median", at_most=200)
async def a_stream_through_nginx(stage: Stage) -> float:
    """A proxy, nginx as it is installed, with a cache, stands before the service; four streams of 1 s."""
    service = await stage.service()
    port = await _nginx(stage, service)
    stage.upstream.behave = speaking(lambda _: "abcdefghij", pieces=10, pause=0.1)
    through = [await _first_piece(port) for _ in range(4)]
    direct = [await _first_piece(service.port) for _ in range(4)]
    held(all(rest > 0.5 for _, rest in through), "the pieces came together")
    return (percentile([each for each, _ in through], 0.5) - percentile([each for each, _ in direct], 0.5)) * 1000


async def _first_piece(port: int) -> tuple[float, float]:
    """Seconds to the first piece, and from there to the end."""
    began = time.monotonic()
    async with opened(port) as (reader, writer):
        writer.write(question("/time/chat?query=hi", headers=_STREAM))
        await reader.readuntil(b"event: delta")
        first = time.monotonic()
        await reader.readuntil(b"event: done")
        return first - began, time.monotonic() - first


@fault(users="each gets an answer of its own", figure="answers that a cache gave, of 40", at_most=0)
async def a_cache_before_the_service(stage: Stage) -> float:
    """A proxy (nginx) keeps whatever may be kept; ten questions and sessions are asked twice, some of which fail."""
    service = await stage.service()
    port = await _nginx(stage, service)
    stage.upstream.behave = speaking(lambda _: "Hello.")
    identifiers, asked = set(), 0
    for number in range(10):
        paths = (f"/time/chat?query={number}", f"/chat?userInput={number}", "/chat/nobody", f"/time/chat?nope={number}")
        for path in paths:
            for _ in range(2):
                identifiers.add((await ask(port, path)).headers.get("x-request-id", ""))
                asked += 1
    return asked - len(identifiers)


@fault(users="no task is left behind", figure="s until the last request to the provider was cancelled", at_most=5)
async def leavers_behind_nginx(stage: Stage) -> float:
    """50 clients leave in mid-stream, with nginx between them and the service."""
    service = await stage.service()
    port = await _nginx(stage, service)
    stage.upstream.behave = speaking(lambda _: "word " * 600, pieces=600, pause=0.05)

    async def leave() -> None:
        async with opened(port) as (reader, writer):
            writer.write(question("/time/chat?query=hi", headers=_STREAM))
            await reader.readuntil(b"event: delta")
            writer.transport.abort()

    await asyncio.gather(*(leave() for _ in range(50)))
    began = time.monotonic()
    await until(lambda: stage.upstream.aborts == 50)
    return time.monotonic() - began
