"""Tools that fail, hang, flood and lie, and upstreams of tools that do."""

import asyncio
import json
import time
from collections.abc import Sequence
from urllib.parse import parse_qs, urlsplit

from tests.app.tools.baidu_translate.baidu_player import Player
from tests.faults.fault import Bound, Fault, Measure, enter, fault, held
from tests.faults.service import CANARY, Service
from tests.faults.stage import Stage
from tests.faults.upstream import Behaviour, Call, Upstream, calling, frozen, playing
from tests.faults.waiting import until
from tests.faults.wire import Reply
from tests.players.openai_player import body, whole
from tests.service.mcp_client.playing import hostile, written

_JSON = {"Accept": "application/json"}
_FAULTY = '''
import asyncio
import itertools
import sys
import time
from datetime import date

from toolchat import ToolExecutionError, ToolModule
from toolchat.tool_calling.context import ToolContext
from toolchat.tool_calling.function_callback import tool

RUNS = []


async def works() -> str:
    """Work."""
    return "worked"


@tool(retries=2)
async def stumbles() -> str:
    """Fail twice, and then work."""
    RUNS.append(1)
    if len(RUNS) % 3:
        raise ToolExecutionError("not now", retryable=True)
    return "worked"


async def raises() -> str:
    """Raise, with a secret in the text."""
    raise ValueError("the password is hunter2")


async def leaves() -> str:
    """Leave the interpreter."""
    sys.exit(3)


def recurses() -> str:
    """Call itself."""
    return recurses()


async def hangs() -> str:
    """Wait for ever."""
    await asyncio.sleep(3600)
    return ""


def blocks() -> str:
    """Block its thread."""
    time.sleep(2.5)
    return ""


async def endless() -> object:
    """Give numbers without end."""
    return itertools.repeat("x" * 1000)


async def huge() -> str:
    """Give 50 MB."""
    return "x" * 50_000_000


async def odd() -> object:
    """Give what JSON does not have."""
    return {"set": {1}, "bytes": b"abc", "day": date(2030, 1, 31), "nan": float("nan")}


async def circular() -> object:
    """Give a list that holds itself."""
    circle = []
    circle.append(circle)
    return circle


async def reports(context: ToolContext) -> str:
    """Report its progress 100,000 times."""
    for number in range(100_000):
        context.report(number, of=100_000, text="x" * 100)
        if not number % 1000:
            await asyncio.sleep(0)
    return "reported"


module = ToolModule(
    functions=(works, stumbles, raises, leaves, recurses, hangs, blocks, endless, huge, odd, circular, reports),
    default_query="Go",
)
'''


async def _service(stage: Stage) -> Service:
    """A service with the faulty folder, for all rows here."""
    return await stage.service(**stage.tool("faulty", _FAULTY), TOOL_TIMEOUT="1")


async def _asked(stage: Stage, *names: str) -> Reply:
    service = await _service(stage)
    stage.upstream.behave = calling(*names)
    reply = await service.ask("/faulty/chat-tool-function", headers=_JSON)
    held(reply.status == 200, f"answered {reply.outcome}")
    held(reply.json()["answer"] == "Done.", "the model was not told")
    held("hunter2" not in reply.text, "the text of an exception is shown")
    return reply


def _kinds(reply: Reply) -> list[str]:
    return [str(each.get("error_kind") or each["outcome"]) for each in reply.json()["tool_calls"]]


def _ending(names: Sequence[str], kinds: Sequence[str]) -> Measure:
    async def measure(stage: Stage) -> float:
        reply = await _asked(stage, *names)
        held(_kinds(reply) == list(kinds), f"ended as {_kinds(reply)}")
        await asyncio.sleep(0.1)  # the log gathers lines; those of this row must not be found after the next one
        return reply.seconds * 1000

    return measure


_ENDINGS: list[tuple[str, str, list[str], list[str], bool]] = [
    ("tool-fails-twice", "A tool fails twice in a way that may pass; two more tries are allowed", ["stumbles"], ["ok"],
     False),
    ("tool-raises", "A tool raises; its text holds a password", ["raises"], ["failed"], True),
    ("tool-exits", "A tool calls `sys.exit()`", ["leaves"], ["failed"], True),
    ("tool-recurses", "A tool calls itself until Python gives up", ["recurses"], ["failed"], True),
    ("tool-hangs", "A tool never ends; 1 s is allowed", ["hangs"], ["timeout"], False),
    ("tool-blocks", "A tool blocks its thread for longer than 1 s, which is allowed", ["blocks"], ["timeout"], False),
    ("tool-gives-what-json-has-not", "A tool gives a set, bytes, NaN and half a character", ["odd"], ["ok"], False),
    ("tool-gives-a-circle", "A tool gives a list that holds itself", ["circular"], ["tool-result"], True),
    ("tools-side-by-side", "One tool of three works, one raises, one hangs; 1 s is allowed",
     ["works", "raises", "hangs"], ["ok", "failed", "timeout"], True),
]  # fmt: skip
for _name, _done, _names, _ended, _loud in _ENDINGS:
    _users = f"an answer; the model receives {', '.join(f'`{each}`' for each in _ended)}"
    enter(
        Fault(
            "tools", _name, _done, _users, "ms until answered", Bound(None, 3000), _ending(_names, _ended),
            fast=True, loud=_loud, limit=20,
        )
    )  # fmt: skip


@fault(users="an answer; others notice nothing", figure="ms of the slowest probe meanwhile", at_most=500)
async def tools_that_block_all_threads(stage: Stage) -> float:
    """20 questions call a tool that blocks its thread; there are 16 threads."""
    service = await _service(stage)
    asking = [asyncio.create_task(_asked(stage, "blocks")) for _ in range(20)]
    slowest = 0.0
    while not all(each.done() for each in asking):
        slowest = max(slowest, (await service.ask("/health/live")).seconds)
        await asyncio.sleep(0.05)
    held({kind for each in asking for kind in _kinds(each.result())} <= {"timeout", "busy"}, "ended otherwise")
    return slowest * 1000


@fault(users="an answer; the model receives `tool-result`", figure="MiB that the service grows by", at_most=60)
async def tool_gives_without_end(stage: Stage) -> float:
    """A tool returns an iterator without an end."""
    service = await _service(stage)
    await _asked(stage, "works")
    before = most = service.mib()
    asking = asyncio.create_task(_asked(stage, "endless"))
    while not asking.done():
        await asyncio.wait([asking], timeout=0.02)
        most = max(most, service.mib())
    held(_kinds(asking.result()) == ["tool-result"], "it was not refused")
    return most - before


@fault(users="an answer", figure="KB of it that the model is given", at_most=40, fast=True)
async def tool_gives_50_mb(stage: Stage) -> float:
    """A tool gives a text of 50 MB."""
    reply = await _asked(stage, "huge")
    held(_kinds(reply) == ["ok"], f"ended as {_kinds(reply)}")
    return len(json.dumps(stage.upstream.calls[-1])) / 1000


@fault(users="an answer", figure="KB of events that a client is sent", at_most=2000)
async def tool_reports_without_end(stage: Stage) -> float:
    """A tool reports its progress 100,000 times; a client listens."""
    service = await _service(stage)
    stage.upstream.behave = calling("reports")
    reply = await service.ask("/faulty/chat-tool-function", headers={"Accept": "text/event-stream"})
    held(reply.last == "done", f"ended with {reply.last}")
    return len(reply.body) / 1000


async def _weather(stage: Stage, behave: Behaviour, city: str = "Paris") -> tuple[Reply, Upstream]:
    """Ask for the weather of a city; WeatherAPI, whose key is the canary, behaves so."""
    if "weather" not in stage.kept:
        stage.kept["weather"] = Upstream()
        await stage.kept["weather"].__aenter__()
    upstream: Upstream = stage.kept["weather"]
    upstream.reset()
    upstream.behave = behave
    settings = {"WEATHER_API_KEY": CANARY, "WEATHER_BASE_URL": upstream.url}
    service = await stage.service(**settings, TOOL_TIMEOUT="1")
    stage.upstream.behave = calling("getWeatherFunction", city=city, days=1)
    return await service.ask("/weather/chat-tool-function", headers=_JSON), upstream


def _away(behave: Behaviour) -> Measure:
    async def measure(stage: Stage) -> float:
        reply, weather = await _weather(stage, behave)
        held(weather.calls, "it was not asked")
        held(reply.status == 200, f"answered {reply.outcome}")
        held(_kinds(reply) != ["ok"], "it was taken for a forecast")
        held(CANARY not in reply.text, "the key is shown")
        return reply.seconds * 1000

    return measure


for _name, _done, _behave in [
    ("weather-frozen", "never answers; 0.5 s are allowed", frozen),
    ("weather-html", "answers with a page of HTML", playing(body(b"<html>21 degrees</html>", 200))),
    ("weather-500", "answers with 500", playing(body(b"", 500))),
    ("weather-key-refused", "refuses the key",
     playing(whole({"error": {"code": 2006, "message": f"API key {CANARY} is invalid"}}, 401))),
    ("weather-empty-forecast", "answers with JSON that has no forecast",
     playing(whole({"location": {}, "forecast": {}}))),
]:  # fmt: skip
    enter(
        Fault(
            "tools", _name, f"WeatherAPI {_done}", "an answer that says that the look-up failed, and no temperature",
            "ms until answered", Bound(None, 3000), _away(_behave), fast=True, limit=20,
        )
    )  # fmt: skip


@fault(users="no such place", figure="requests that went elsewhere, or with another key", at_most=0, fast=True)
async def cities_that_are_no_cities(stage: Stage) -> float:
    """The model asks for the weather of URLs, paths, addresses and parameters in place of cities."""
    cities = [
        "Paris",
        "127.0.0.1#",
        "../../admin",
        "x&key=other",
        "http://169.254.169.254/",
        "auto:ip",
        "a\r\nHost: evil",
        "%2e",
    ]
    seen: list[str] = []

    async def answer(call: Call) -> None:
        seen.append(call.path)
        await playing(whole({"error": {"code": 1006, "message": "No matching location found."}}, 400))(call)

    for city in cities:
        reply, _ = await _weather(stage, answer, city)
        held(reply.status == 200, f"answered {reply.outcome}")
    held(seen, "not even Paris was asked for")
    stage.note = f"{len(seen)} requests for {len(cities)} of them"
    return sum(urlsplit(path).path != "/v1/forecast.json" or "key" in parse_qs(urlsplit(path).query) for path in seen)


async def _translating(stage: Stage) -> tuple[Service, Player]:
    """A service whose plan allows 10 translations per second, and Baidu."""
    baidu = Player([])
    server = await stage.row.enter_async_context(await asyncio.start_server(baidu.handle, "127.0.0.1", 0))
    settings = {
        "BAIDU_TRANSLATE_APP_ID": "id",
        "BAIDU_TRANSLATE_SECRET_KEY": CANARY,
        "BAIDU_TRANSLATE_BASE_URL": f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/translate",
        "BAIDU_TRANSLATE_REQUESTS_PER_SECOND": "10",
    }
    return await stage.own(**settings), baidu


def _text(words: str) -> dict[str, str]:
    return {"q": words, "from": "auto", "to": "en"}


@fault(users="a wait; none is refused", figure="requests to Baidu per second, of 10 that the plan allows", at_most=11)
async def translations_beyond_the_plan(stage: Stage) -> float:
    """30 translations at once."""
    service, baidu = await _translating(stage)
    asking = (service.ask("/tools/baiduTranslateFunction", json_body=_text(f"text {n}")) for n in range(30))
    replies = await asyncio.gather(*asking)
    held(all(each.json()["outcome"] == "ok" for each in replies), "some failed")
    return (len(baidu.arrivals) - 1) / (baidu.arrivals[-1].at - baidu.arrivals[0].at)


@fault(users="their turn comes next", figure="translations of the other client that come before", at_most=3)
async def translations_of_another_client(stage: Stage) -> float:
    """One client asks for 30 translations at once, and another one, from another address, for one."""
    service, baidu = await _translating(stage)
    path = "/tools/baiduTranslateFunction"
    greedy = [asyncio.create_task(service.ask(path, json_body=_text(f"text {n}"))) for n in range(30)]
    await until(lambda: baidu.arrivals)
    before = len(baidu.arrivals)
    reply = await service.ask(path, json_body=_text("hers"), source="127.0.0.2")
    held(reply.json()["outcome"] == "ok", f"ended as {reply.text[:200]}")
    place = [each.form["q"] for each in baidu.arrivals].index("hers")
    await asyncio.gather(*greedy)
    return place - before


@fault(users="`tool-server-away`, then answers again", figure="s until it is back", at_most=5)
async def another_server_dies(stage: Stage) -> float:
    """The process of an MCP server dies inside a call."""
    service = await _beside(stage)
    died = await service.ask("/tools/dies", json_body={})
    held(died.json().get("error_kind") == "tool-server-away", f"ended as {died.text[:200]}")
    began = time.monotonic()
    await until(lambda: _is_back(service))
    return time.monotonic() - began


@fault(users="the result is an error", figure="s until answered, of 1 s", at_most=3)
async def another_server_hangs(stage: Stage) -> float:
    """An MCP server never answers a call; 1 s is allowed."""
    service = await _beside(stage)
    await until(lambda: _is_back(service))
    reply = await service.ask("/tools/hang", json_body={})
    held(reply.json()["error_kind"] == "timeout", f"ended as {reply.text[:200]}")
    return reply.seconds


async def _beside(stage: Stage) -> Service:
    file = stage.kept.setdefault("file", written(stage.folder, far=hostile()))
    service = await stage.service(MCP_SERVERS_FILE=file, TOOL_TIMEOUT="1")
    await until(lambda: _is_back(service))
    return service


async def _is_back(service: Service) -> bool:
    return (await service.ask("/tools/reads", json_body={})).status == 200
