"""A chat provider that fails in every way that providers do."""

import asyncio
import gzip
import itertools
import json
import socket
import time
from contextlib import suppress

from tests.faults.fault import Bound, Fault, Measure, enter, fault, held
from tests.faults.service import Service
from tests.faults.stage import Stage
from tests.faults.upstream import Behaviour, Call, Upstream, frozen, playing, saying, speaking
from tests.faults.waiting import until
from tests.faults.wire import Reply, reset
from tests.http.certificates import Authority
from tests.players.openai_player import Answer, body, bytewise, delta, event, finish, message, sse, whole

_IMPATIENT = {
    "MODEL_TIMEOUT": "1",
    "REQUEST_TIMEOUT": "3",
    "TOOL_TIMEOUT": "3",
    "MODEL_MAX_ATTEMPTS": "2",
}
_EVENTS = {"Accept": "text/event-stream"}
_SAID = "It is 你好 \u2028 😀, and so on."
_JSON = "application/json"


async def _asked(stage: Stage, behave: Behaviour, *, streams: bool = False) -> Reply:
    service = await stage.service(**_IMPATIENT)
    stage.upstream.behave = behave
    return await service.ask("/time/chat?query=hi", headers=_EVENTS if streams else {})


def _failing(behave: Behaviour, outcome: str, tries: int, *, streams: bool = False) -> Measure:
    async def measure(stage: Stage) -> float:
        reply = await _asked(stage, behave, streams=streams)
        held(reply.outcome == outcome, f"answered {reply.outcome}: {reply.text[:200]}")
        held(len(stage.upstream.calls) == tries, f"the provider was asked {len(stage.upstream.calls)} times")
        held(b"<html" not in reply.body, "the provider's page is shown to users")
        return reply.seconds * 1000

    return measure


def _told(behave: Behaviour, *, streams: bool = False) -> Measure:
    """What the provider said arrives to the letter."""

    async def measure(stage: Stage) -> float:
        reply = await _asked(stage, behave, streams=streams)
        text = reply.text
        if streams:
            held(reply.last == "done", f"ended with {reply.outcome}")
            text = "".join(data["text"] for name, data in reply.events if name == "delta")
        held((reply.status, text) == (200, _SAID), f"answered {reply.outcome} {text[:100]!r}")
        return reply.seconds * 1000

    return measure


async def _resets(call: Call) -> None:
    reset(call.writer)


async def _hangs_up(call: Call) -> None:
    call.writer.close()


def _stops(*pieces: bytes, media_type: str = "text/event-stream") -> Behaviour:
    """Begin an answer and fall silent."""

    async def stop(call: Call) -> None:
        await call.begin(media_type)
        for piece in pieces:
            await call.piece(piece)
        await call.left()

    return stop


async def _endless_headers(call: Call) -> None:
    await call.send(b"HTTP/1.1 200 OK\r\n")
    for number in itertools.count():
        await call.send(b"X-Header-%d: %b\r\n" % (number, b"x" * 1000))


async def _endless_body(call: Call) -> None:
    await call.begin(_JSON)
    while True:
        await call.piece(b" " * 2**16)


async def _trickles(call: Call) -> None:
    await call.begin(_JSON)
    for byte in json.dumps(message(content=_SAID)).encode():
        await call.piece(bytes([byte]))
        await asyncio.sleep(0.002)
    await call.piece(b"")


def _in_turn(*behaviours: Behaviour) -> Behaviour:
    """One behaviour for each request, the last for all that follow."""
    left = list(behaviours)

    async def answer(call: Call) -> None:
        await (left.pop(0) if len(left) > 1 else left[0])(call)

    return answer


def _refusal(status: int, code: str = "", **headers: str) -> Behaviour:
    return playing(whole({"error": {"message": "no", "type": "t", "code": code}}, status, **headers))


_HTML = Answer([b"<html><h1>Bad Gateway</h1></html>"], 502, {"Content-Type": "text/html"})
_BEGUN = event(delta(content="It is"))
_BEFORE = [delta(content="It is"), delta(content=" so")]
_PAGE = playing(body(b"<html>Welcome</html>", 200, Content_Type="text/html"))
_NO_JSON = playing(body(b"{'a': 1}", 200, Content_Type=_JSON))
_CUT_OFF = "200 error upstream-timeout"
_UNAVAILABLE, _INVALID, _TIMEOUT = "502 upstream-unavailable", "502 upstream-invalid", "504 upstream-timeout"
_SPLIT = bytewise(sse(delta(content=_SAID), finish("stop")))
_QUIRKS = sse(
    b": a comment\r\n\r\n", delta(role="assistant", content=None), {"choices": []}, delta(content=_SAID[:5]),
    b"event: ping\ndata: {}\n\n", delta(content=_SAID[5:], unknown={"a": 1}), finish("stop"),
    {"choices": [], "usage": None},
)  # fmt: skip
_CRLF = Answer([each.replace(b"\n", b"\r\n") for each in _SPLIT.pieces], 200, _SPLIT.headers)

# Name, what is done, its behaviour, what is told, how often the provider is asked, whether the answer is a stream.
_FAILURES: list[tuple[str, str, Behaviour, str, int, bool]] = [
    ("upstream-resets", "the connection is reset when the question is there", _resets, _UNAVAILABLE, 2, False),
    ("upstream-hangs-up", "the connection is closed without a byte", _hangs_up, _UNAVAILABLE, 2, False),
    ("upstream-frozen", "no byte comes for a whole answer", frozen, _TIMEOUT, 1, False),
    ("upstream-frozen-stream", "no byte comes for a stream", frozen, _TIMEOUT, 1, True),
    ("upstream-frozen-after-headers", "nothing comes behind the headers", _stops(), _TIMEOUT, 1, True),
    ("upstream-cut-body", "a JSON answer is cut in its middle", playing(Answer([b'{"id": "x", "choi'], 200,
     {"Content-Type": _JSON}, "cut")), _INVALID, 2, False),
    ("upstream-cut-stream", "a stream is cut after its first words",
     playing(sse(*_BEFORE, done=False, ending="cut")), "200 error upstream-invalid", 1, True),
    ("upstream-reset-stream", "a stream is reset after its first words",
     playing(sse(*_BEFORE, done=False, ending="reset")), "200 error upstream-invalid", 1, True),
    ("upstream-no-end", "a stream ends in order without saying that it has finished",
     playing(sse(*_BEFORE, done=False)), "200 error upstream-invalid", 1, True),
    ("upstream-half-event", "a stream ends inside an event",
     playing(Answer([_BEGUN, b'data: {"choices": [{"ind'], 200, {"Content-Type": "text/event-stream"})),
     "200 error upstream-invalid", 1, True),
    ("upstream-empty-stream", "a stream has no event", playing(sse(done=False)), _INVALID, 2, True),
    ("upstream-error-in-stream", "an error stands in a stream of status 200",
     playing(sse(*_BEFORE, {"error": {"message": "no", "type": "server_error", "code": None}}, done=False)),
     "200 error upstream-unavailable", 1, True),
    ("upstream-endless-headers", "headers do not end", _endless_headers, _INVALID, 1, False),
    ("upstream-html-502", "502 with a page of HTML", playing(_HTML), _UNAVAILABLE, 2, False),
    ("upstream-html-200", "200 with a page of HTML", _PAGE, _INVALID, 1, False),
    ("upstream-empty-200", "200 with an empty body", playing(body(b"", 200, Content_Type=_JSON)), _INVALID, 2, False),
    ("upstream-no-json", "200 with invalid JSON", _NO_JSON, _INVALID, 2, False),
    ("upstream-deep-json", "200 with JSON nested 100,000 deep",
     playing(body(b"[" * 100_000 + b"]" * 100_000, 200, Content_Type=_JSON)), _INVALID, 2, False),
    ("upstream-bad-utf8", "200 with JSON that is no UTF-8",
     playing(body(b'{"choices": [{"message": {"content": "\xff\xfe"}}]}', 200, Content_Type=_JSON)),
     _INVALID, 2, False),
    ("upstream-no-gzip", "plain bytes that say they are packed",
     playing(body(b"{}", 200, Content_Type=_JSON, Content_Encoding="gzip")), _INVALID, 1, False),
    ("upstream-redirects", "a redirect to another host",
     playing(body(b"", 302, Location="http://evil.example/v1")), _INVALID, 1, False),
    ("upstream-429", "429 for ever", _refusal(429, "rate_limit_exceeded"), "503 provider-rate-limited", 2, False),
    ("upstream-429-tomorrow", "429 with `Retry-After` of a day", _refusal(429, Retry_After="86400"),
     "503 provider-rate-limited", 1, False),
    ("upstream-quota", "429 since the account is out of money", _refusal(429, "insufficient_quota"),
     "503 provider-quota", 1, False),
    ("upstream-500", "500 for ever", _refusal(500), _UNAVAILABLE, 2, False),
    ("upstream-401", "401: the key is refused", _refusal(401, "invalid_api_key"), "503 provider-auth", 1, False),
    ("upstream-context", "400: the conversation is too long", _refusal(400, "context_length_exceeded"),
     "422 context-too-long", 1, False),
    ("upstream-moderation", "400: the moderation refuses", _refusal(400, "content_filter"),
     "422 content-filtered", 1, False),
]  # fmt: skip

_MENDED: list[tuple[str, str, Behaviour, bool]] = [
    ("upstream-500-once", "500 once", _in_turn(_refusal(500), saying(_SAID)), False),
    ("upstream-reset-once", "one reset before a word has come", _in_turn(_resets, saying(_SAID)), True),
    ("upstream-no-json-once", "one answer with invalid JSON", _in_turn(_NO_JSON, saying(_SAID)), False),
    ("upstream-trickles", "a JSON answer byte by byte", _trickles, False),
    ("upstream-splits-characters", "a stream byte by byte, Chinese and emoji among it", playing(_SPLIT), True),
    ("upstream-crlf", "a stream with CRLF for its lines", playing(_CRLF), True),
    ("upstream-quirks", "comments, empty choices, unknown fields and events in a stream", playing(_QUIRKS), True),
]


def _enter(name: str, done: str, users: str, most: float, measure: Measure, *, fast: bool) -> None:
    done = f"The provider: {done}"
    enter(Fault("upstreams", name, done, users, "ms until answered", Bound(None, most), measure, fast=fast, limit=20))


for _name, _done, _behave, _outcome_, _tries, _streams in _FAILURES:
    _users = f"{_outcome_.replace('200 error', 'the text so far, then an `error` event')}, asked {_tries} ×"
    _enter(_name, _done, _users, 6000, _failing(_behave, _outcome_, _tries, streams=_streams), fast=_tries == 1)
for _name, _done, _behave, _streams in _MENDED:
    _enter(_name, _done, "the whole answer, to the letter", 4000, _told(_behave, streams=_streams), fast=True)


@fault(users="the text so far, then an `error` event, asked 1 ×", figure="ms until answered, of 1 s of silence",
       at_most=2500, fast=True)  # fmt: skip
async def upstream_frozen_mid_stream(stage: Stage) -> float:
    """The provider: a stream falls silent after its first words; a question may take 3 s."""
    return await _failing(_stops(_BEGUN), _CUT_OFF, 1, streams=True)(stage)


@fault(users="the text so far, then an `error` event, asked 1 ×", figure="ms until answered, of 3 s for a question",
       at_most=6000, limit=20)  # fmt: skip
async def upstream_that_never_ends(stage: Stage) -> float:
    """The provider: a stream goes on for a minute, a word every half second."""
    endless = speaking(lambda _: "word " * 120, pieces=120, pause=0.5)
    return await _failing(endless, "200 error deadline", 1, streams=True)(stage)


@fault(users="504 `deadline`", figure="ms until answered, of 1 s for a question", at_most=3000)
async def upstream_slower_than_the_question(stage: Stage) -> float:
    """The provider: no byte comes, and a question may take 1 s (`REQUEST_TIMEOUT`)."""
    service = await stage.service(REQUEST_TIMEOUT="1")
    stage.upstream.behave = frozen
    reply = await service.ask("/time/chat?query=hi")
    held(reply.outcome == "504 deadline", f"answered {reply.outcome}")
    return reply.seconds * 1000


@fault(users="an `error` event, and a conversation without the turn", figure="turns stored, of one that was whole",
       at_least=1, at_most=1, fast=True)  # fmt: skip
async def upstream_cut_in_a_session(stage: Stage) -> float:
    """The provider: a stream in a session ends after its first words, without saying that it has finished."""
    service, session = await stage.service(**_IMPATIENT), stage.name()
    await service.ask("/chat?userInput=whole", session=session)
    stage.upstream.behave = playing(sse(*_BEFORE, done=False))
    reply = await service.ask("/chat/stream?userInput=cut", session=session)
    held(reply.outcome == "200 error upstream-invalid", f"answered {reply.outcome}")
    messages = (await service.ask(f"/chat/{session}")).json()["messages"]
    held(messages[0]["text"] == "whole", f"stored is {messages}")
    return len(messages) / 2


async def _elsewhere(stage: Stage, url: str, outcome: str, **variables: str) -> float:
    """Send a question to another address; milliseconds."""
    service = await stage.own(**(_IMPATIENT | variables), OPENAI_BASE_URL=url)
    reply = await service.ask("/time/chat?query=hi")
    held(reply.outcome == outcome, f"answered {reply.outcome}")
    return reply.seconds * 1000


@fault(users="502 `upstream-unavailable`", figure="ms until answered", at_most=4000)
async def upstream_refuses_connections(stage: Stage) -> float:
    """The provider: its port refuses connections."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        return await _elsewhere(stage, f"http://127.0.0.1:{closed.getsockname()[1]}/v1", _UNAVAILABLE)


@fault(users="502 `upstream-unavailable`", figure="ms until answered", at_most=6000)
async def upstream_without_a_name(stage: Stage) -> float:
    """The provider: its name cannot be looked up."""
    return await _elsewhere(stage, "http://nobody.invalid/v1", _UNAVAILABLE)


@fault(users="504 `upstream-timeout`", figure="ms until answered, of 5 s to connect", at_most=9000)
async def upstream_that_does_not_connect(stage: Stage) -> float:
    """The provider: connections are neither accepted nor refused, as behind a firewall; an answer may take 20 s."""
    with socket.socket() as deaf, socket.socket() as first, socket.socket() as second:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        for each in (first, second):  # they fill its queue
            each.setblocking(False)
            with suppress(BlockingIOError):
                each.connect(deaf.getsockname())
        patient = {"MODEL_TIMEOUT": "20", "MODEL_MAX_ATTEMPTS": "1"}
        return await _elsewhere(stage, f"http://127.0.0.1:{deaf.getsockname()[1]}/v1", _TIMEOUT, **patient)


@fault(users="502 `upstream-unavailable`, asked once", figure="ms until answered", at_most=4000)
async def upstream_with_a_foreign_certificate(stage: Stage) -> float:
    """The provider: its certificate is signed by an unknown authority."""
    tls = Authority(stage.folder).server()
    return await _behind(stage, await asyncio.start_server(_say_nothing, "127.0.0.1", 0, ssl=tls))


@fault(users="502 `upstream-unavailable`", figure="ms until answered", at_most=4000)
async def upstream_without_tls(stage: Stage) -> float:
    """The provider: plain HTTP where HTTPS was expected."""
    return await _behind(stage, await asyncio.start_server(_say_nothing, "127.0.0.1", 0))


async def _say_nothing(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")


async def _behind(stage: Stage, server: asyncio.Server) -> float:
    async with server:
        port = server.sockets[0].getsockname()[1]
        return await _elsewhere(stage, f"https://127.0.0.1:{port}/v1", _UNAVAILABLE)


@fault(users="a wait, then the answer", figure="s until answered", at_least=1, at_most=4)
async def upstream_429_once(stage: Stage) -> float:
    """The provider: 429 with `Retry-After: 1`, then it answers."""
    reply = await _asked(stage, _in_turn(_refusal(429, Retry_After="1"), saying(_SAID)))
    held((reply.status, reply.text) == (200, _SAID), f"answered {reply.outcome}")
    return reply.seconds


@fault(users="502 `upstream-invalid`", figure="MiB that the service grows by", at_most=30, fast=True)
async def upstream_gzip_bomb(stage: Stage) -> float:
    """The provider: 200 KB that unpack to 200 MB."""
    packed = gzip.compress(bytes(200 * 2**20), 9)
    return await _growth(stage, playing(body(packed, 200, Content_Type=_JSON, Content_Encoding="gzip")))


@fault(users="502 `upstream-invalid`", figure="MiB that the service grows by", at_most=30)
async def upstream_endless_body(stage: Stage) -> float:
    """The provider: a JSON answer that does not end."""
    return await _growth(stage, _endless_body)


async def _growth(stage: Stage, behave: Behaviour) -> float:
    await _asked(stage, saying())
    service = await stage.service(**_IMPATIENT)
    before = most = service.mib()
    asking = asyncio.create_task(_asked(stage, behave))
    while not asking.done():
        await asyncio.wait([asking], timeout=0.02)
        most = max(most, service.mib())
    held(asking.result().outcome == _INVALID, f"answered {asking.result().outcome}")
    return most - before


@fault(users="502 `upstream-unavailable`, and no storm", figure="requests to the provider for each question", at_most=2)
async def upstream_retries_are_bounded(stage: Stage) -> float:
    """The provider: 500 for 100 questions at once; two tries are allowed."""
    service = await stage.service(**_IMPATIENT)
    stage.upstream.behave = _refusal(500)
    replies = await asyncio.gather(*(service.ask("/time/chat?query=hi") for _ in range(100)))
    outcomes = {each.outcome for each in replies}
    held(outcomes == {_UNAVAILABLE}, f"answered {sorted(outcomes)}")
    return len(stage.upstream.calls) / 100


@fault(users="502 at once, then answers again", figure="s until the first answer after it is back", at_most=13)
async def upstream_comes_back(stage: Stage) -> float:
    """The provider: 500 until the breaker opens (3 failures, a pause of 10 s), then it is well again."""
    service = await stage.service(**_IMPATIENT, BREAKER_FAILURES="3")
    stage.upstream.behave = _refusal(500)
    for _ in range(4):
        await service.ask("/time/chat?query=hi")
    asked = len(stage.upstream.calls)
    refused = await service.ask("/time/chat?query=hi")
    held(refused.outcome == _UNAVAILABLE, f"answered {refused.outcome}")
    held(len(stage.upstream.calls) == asked, "asked although its circuit is open")
    stage.upstream.behave = saying(_SAID)
    began = time.monotonic()
    await until(lambda: _is_answered(service))
    return time.monotonic() - began


async def _is_answered(service: Service) -> bool:
    return (await service.ask("/time/chat?query=hi")).status == 200


@fault(users="the other model's answer", figure="questions of 20 that were not answered", at_most=0)
async def upstream_falls_back(stage: Stage) -> float:
    """The provider resets every connection; another one stands by (`CHAT_FALLBACKS`)."""
    other = await stage.row.enter_async_context(Upstream())
    other.behave = saying(_SAID)
    standing_by = [{"provider": "openai_compatible", "base_url": other.url, "api_key": "k", "model": "m"}]
    service = await stage.own(**_IMPATIENT, CHAT_FALLBACKS=json.dumps(standing_by))
    stage.upstream.behave = _resets
    replies = [await service.ask("/time/chat?query=hi") for _ in range(20)]
    return sum(each.text != _SAID for each in replies)


@fault(users="an answer that took no longer", figure="ms that the slowest of 50 others took", at_most=2000)
async def upstream_that_is_slow_for_some(stage: Stage) -> float:
    """The provider is silent for 200 questions, and answers 50 others meanwhile."""
    service = await stage.service(**_IMPATIENT)

    async def answer(call: Call) -> None:
        text = call.body["messages"][-1]["content"]
        await (frozen if text == "hang" else speaking(lambda _: _SAID))(call)

    stage.upstream.behave = answer
    hanging = [asyncio.create_task(service.ask("/time/chat?query=hang")) for _ in range(200)]
    await asyncio.sleep(0.2)
    replies = [await service.ask("/time/chat?query=hi") for _ in range(50)]
    held(all(each.status == 200 for each in replies), f"answered {sorted({each.outcome for each in replies})}")
    await asyncio.gather(*hanging)
    return max(each.seconds for each in replies) * 1000
