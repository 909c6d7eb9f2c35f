"""The bytes that the fake upstream sends, prepared once; only the question's number is put in per answer."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

__all__ = [
    "CITY",
    "END",
    "NUMBER",
    "RESULT_MARKERS",
    "Reply",
    "calling",
    "numbered",
    "saying",
    "weather",
]

NUMBER = b"ask-00000000"
"""The place of a question's number, such as ``ask-00000042``; every answer repeats the number of its question."""

CITY = b"Benchbury aaaaaaaa"
"""The place of a city that is asked for once only, so that a cache of results never spares an upstream call."""

END = b"end of the answer"
"""The last words of every answer."""

RESULT_MARKERS = (b"the current time is", b"Benchbury", b"grown result")
"""What stands in the results of the tools and nowhere else: without it a tool's result did not reach the model."""

_ARGUMENTS: Mapping[str, Mapping[str, object]] = {
    "time": {"timeZoneId": "Asia/Shanghai"},
    "weather": {"city": CITY.decode(), "days": 3},
    "forecast": {"city": CITY.decode()},
    "search": {"query": "weather forecast of a city"},
}
_SENTENCE = (
    "The tool was asked, and this is what came back from it, in words that come one by one, each of them in a piece "
    "by itself, up to the"
)
_TEXT = f"{NUMBER.decode()} {_SENTENCE} {END.decode()}"
_LETTERS = bytes.maketrans(b"0123456789", b"abcdefghij")
_JSON = b"application/json"
_SSE = b"text/event-stream; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer of the model in both forms, as whole bytes of HTTP."""

    whole: bytes
    head: bytes
    """Status line and headers of the stream."""
    pieces: tuple[bytes, ...]
    """Chunks of the stream; the last one ends the body."""

    def numbered(self, number: bytes) -> bytes:
        """The whole answer to the question of that number."""
        return numbered(self.whole, number)

    def stream(self, number: bytes) -> bytes:
        """The whole stream at once."""
        return numbered(self.head + b"".join(self.pieces), number)


def numbered(content: bytes, number: bytes) -> bytes:
    """Put a question's number, and the city that goes with it, into prepared bytes."""
    return content.replace(NUMBER, number).replace(CITY, CITY[:-8] + number[-8:].translate(_LETTERS))


@cache
def calling(protocol: str, name: str) -> Reply:
    """Ask for one tool, with the arguments that its kind takes."""
    kind = next((kind for kind in _ARGUMENTS if kind in name.lower()), "")
    arguments = json.dumps(_ARGUMENTS.get(kind, {}))
    middle = arguments.find(",") if "," in arguments else len(arguments) // 2
    call = {"index": 0, "id": "call_0123456789abcdef", "type": "function"}
    whole = {**call, "function": {"name": name, "arguments": arguments}}
    fragments = [
        {**call, "function": {"name": name, "arguments": ""}},
        _rest(protocol, arguments[:middle]),
        _rest(protocol, arguments[middle:]),
    ]
    deltas = [{"role": "assistant", "content": None, "tool_calls": [each]} for each in fragments]
    return _reply(protocol, {"content": None, "tool_calls": [whole]}, deltas, "tool_calls")


@cache
def saying(protocol: str) -> Reply:
    """Answer with a text."""
    first, *rest = _TEXT.split(" ")
    deltas = [{"role": "assistant", "content": text} for text in (first, *(f" {word}" for word in rest))]
    return _reply(protocol, {"content": _TEXT}, deltas, "stop")


@cache
def weather() -> bytes:
    """WeatherAPI's forecast of three days, about 15 kB."""
    condition: dict[str, Any] = {
        "text": "Light rain",
        "icon": "//cdn.weatherapi.com/weather/64x64/day/296.png",
        "code": 1183,
    }
    now: dict[str, Any] = {
        "temp_c": 12.4,
        "feelslike_c": 11.0,
        "humidity": 71,
        "wind_kph": 14.0,
        "wind_dir": "NW",
        "uv": 2.0,
    }
    now |= {"precip_mm": 0.3, "pressure_mb": 1013.0, "vis_km": 10.0, "gust_kph": 21.4, "cloud": 75}
    day: dict[str, Any] = {"maxtemp_c": 14.0, "mintemp_c": 7.1, "daily_chance_of_rain": 80, "daily_chance_of_snow": 0}
    day |= {"totalprecip_mm": 4.1, "maxwind_kph": 22.0, "avghumidity": 70, "uv": 2.0}
    hours: list[dict[str, Any]] = [{"time": f"{hour:02}:00", "condition": condition, **now} for hour in range(16)]
    astro = {"sunrise": "06:12 AM", "sunset": "06:05 PM", "moon_phase": "Waxing Crescent"}
    days = [
        {"date": f"2026-01-0{number}", "day": day | {"condition": condition}, "astro": astro, "hour": hours}
        for number in (1, 2, 3)
    ]
    place = {"name": "Benchbury", "region": "Nowhere", "country": "Bench", "localtime": "2026-01-01 12:00"}
    body = {"location": place, "current": now | {"condition": condition}, "forecast": {"forecastday": days}}
    return _whole(body)


def _rest(protocol: str, arguments: str) -> dict[str, Any]:
    identity = {"id": "", "type": "function"} if protocol == "dashscope" else {}
    return {"index": 0, **identity, "function": {"arguments": arguments}}


def _reply(protocol: str, message: Mapping[str, Any], deltas: Sequence[Mapping[str, Any]], finish_reason: str) -> Reply:
    whole, events = (_dashscope if protocol == "dashscope" else _openai)(message, deltas, finish_reason)
    head = b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\nTransfer-Encoding: chunked\r\n\r\n" % _SSE
    chunks = [b"%x\r\n%b\r\n" % (len(event), event) for event in events]
    return Reply(_whole(whole), head, (*chunks[:-1], chunks[-1] + b"0\r\n\r\n"))


def _openai(
    message: Mapping[str, Any], deltas: Sequence[Mapping[str, Any]], finish_reason: str
) -> tuple[dict[str, Any], list[bytes]]:
    shared = {"id": "chatcmpl-0123456789", "created": 1767225600, "model": "bench-model"}
    usage = {"prompt_tokens": 120, "completion_tokens": 30, "total_tokens": 150}
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish_reason, "logprobs": None}
    chunk = {**shared, "object": "chat.completion.chunk"}
    choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    events = [b"data: %b\n\n" % _compact({**chunk, "choices": [each]}) for each in choices]
    ends = {"index": 0, "delta": {}, "finish_reason": finish_reason}
    last = [{**chunk, "choices": [ends]}, {**chunk, "choices": [], "usage": usage}]
    events.append(b"".join(b"data: %b\n\n" % _compact(each) for each in last) + b"data: [DONE]\n\n")
    return {**shared, "object": "chat.completion", "choices": [choice], "usage": usage}, events


def _dashscope(
    message: Mapping[str, Any], deltas: Sequence[Mapping[str, Any]], finish_reason: str
) -> tuple[dict[str, Any], list[bytes]]:
    def answer(said: Mapping[str, Any], reason: str, written: int) -> dict[str, Any]:
        content = {"role": "assistant", **said, "content": said.get("content") or ""}
        usage = {"input_tokens": 120, "output_tokens": written, "total_tokens": 120 + written}
        choices = [{"message": content, "finish_reason": reason}]
        return {"output": {"choices": choices}, "usage": usage, "request_id": "902fee3b-f7f0-9a8c-96a1-6b4ea25af114"}

    answers = [answer(delta, "null", number) for number, delta in enumerate(deltas, 1)]
    answers.append(answer({}, finish_reason, 30))
    events = [
        b"id:%d\nevent:result\n:HTTP_STATUS/200\ndata:%b\n\n" % (number, _compact(each))
        for number, each in enumerate(answers, 1)
    ]
    return answer(message, finish_reason, 30), events


def _whole(body: object) -> bytes:
    content = _compact(body)
    head = b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\nContent-Length: %d\r\n\r\n" % (_JSON, len(content))
    return head + content


def _compact(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
