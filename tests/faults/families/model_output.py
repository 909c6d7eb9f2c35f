"""Whatever a model writes: calls of tools that are not there, arguments that are none, loops, and texts that forge."""

import asyncio
import json
from collections.abc import Sequence
from random import Random
from typing import Any
from zoneinfo import available_timezones

from tests.faults.fault import Bound, Fault, Measure, enter, fault, held
from tests.faults.stage import Stage
from tests.faults.upstream import Behaviour, Call, playing, saying
from tests.faults.wire import Reply
from tests.players.openai_player import delta, finish, message, sse, whole

_ASK = "/time/chat-tool-function?query=hi"
_JSON = {"Accept": "application/json"}
_EVENTS = {"Accept": "text/event-stream"}
_CLOCK = "getCityTimeFunction"
_TOKYO = '{"timeZoneId": "Asia/Tokyo"}'


def _call(arguments: object = _TOKYO, name: object = _CLOCK, call_id: object = "call_1") -> dict[str, Any]:
    fields = {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
    return {key: value for key, value in fields.items() if value is not None}


def _has_results(call: Call) -> bool:
    return any(each["role"] == "tool" for each in call.body["messages"])


def _calling(*calls: dict[str, Any], always: bool = False) -> Behaviour:
    """Ask for calls, and say that it is done when their results are there."""

    async def answer(call: Call) -> None:
        if _has_results(call) and not (always and call.body.get("tools")):
            return await saying("Done.")(call)
        return await playing(whole(message("tool_calls", content=None, tool_calls=list(calls))))(call)

    return answer


async def _asked(stage: Stage, behave: Behaviour, headers: dict[str, str] = _JSON, **settings: str) -> Reply:
    service = await stage.service(**settings)
    stage.upstream.behave = behave
    return await service.ask(_ASK, headers=headers)


def _kinds(reply: Reply) -> list[str]:
    held(reply.status == 200, f"answered {reply.outcome}: {reply.text[:200]}")
    return [str(each.get("error_kind") or each["outcome"]) for each in reply.json()["tool_calls"]]


def _running(calls: Sequence[dict[str, Any]], kind: str) -> Measure:
    """How many of the calls ran; the others are answered with an error of this kind."""

    async def measure(stage: Stage) -> float:
        reply = await _asked(stage, _calling(*calls))
        kinds = _kinds(reply)
        held(set(kinds) <= {"ok", kind}, f"the calls ended as {sorted(set(kinds))}")
        held(reply.json()["answer"] == "Done.", "the model was not told")
        return kinds.count("ok")

    return measure


_ARGUMENTS = "invalid-arguments"
_UNKNOWN = "unknown-tool"
# Name, what the model writes, the calls, what the model is told of those that do not run, how many run.
_CALLS: list[tuple[str, str, Sequence[dict[str, Any]], str, int]] = [
    ("call-of-no-tool", "a call of an unknown tool", [_call(name="launchMissiles")], _UNKNOWN, 0),
    ("call-of-a-tool-not-offered", "a call of a tool that this question was not offered",
     [_call('{"time": "2099-01-01T07:00:00"}', name="setAlarm")], _UNKNOWN, 0),
    ("call-without-a-name", "a call with an empty name", [_call(name="")], _UNKNOWN, 0),
    ("call-with-a-steering-name", "a name with a line break and an escape sequence",
     [_call(name=f"{_CLOCK}\n\x1b[2J")], _UNKNOWN, 0),
    ("call-with-a-long-name", "a name of 10,000 characters", [_call(name="x" * 10_000)], _UNKNOWN, 0),
    ("arguments-cut", "arguments that break off", [_call('{"timeZoneId": "Asia/To')], _ARGUMENTS, 0),
    ("arguments-prose", "arguments that are prose", [_call("the zone of Tokyo, please")], _ARGUMENTS, 0),
    ("arguments-twice", "two objects for arguments", [_call(_TOKYO + _TOKYO)], _ARGUMENTS, 0),
    ("arguments-missing", "no arguments where one is needed", [_call("")], _ARGUMENTS, 0),
    ("arguments-null", "`null` for arguments", [_call("null")], _ARGUMENTS, 0),
    ("arguments-list", "a list for arguments", [_call("[1, 2]")], _ARGUMENTS, 0),
    ("arguments-of-another-type", "a list where a text belongs", [_call('{"timeZoneId": [5]}')], _ARGUMENTS, 0),
    ("arguments-unknown", "an unknown argument",
     [_call('{"timeZoneId": "Asia/Tokyo", "shell": "rm -rf /"}')], _ARGUMENTS, 0),
    ("arguments-deep", "arguments nested 100,000 deep", [_call("[" * 100_000 + "]" * 100_000)], _ARGUMENTS, 0),
    ("arguments-huge-integer", "an integer of 5,000 digits",
     [_call('{"timeZoneId": ' + "9" * 5000 + "}")], _ARGUMENTS, 0),
    ("arguments-huge", "arguments of 1 MB", [_call('{"timeZoneId": "' + "x" * 2**20 + '"}')], _ARGUMENTS, 0),
    ("arguments-surrogate", "half of a surrogate pair in the arguments",
     [_call('{"timeZoneId": "\\ud800"}')], _ARGUMENTS, 0),
    ("ids-twice", "two calls with one id", [_call(), _call('{"timeZoneId": "Europe/Paris"}')], "", 2),
    ("ids-missing", "a call without an id", [_call(call_id=None)], "", 1),
    ("many-calls-at-once", "100 calls in one message; 40 of one tool are allowed",
     [_call(json.dumps({"timeZoneId": zone}), call_id=zone) for zone in sorted(available_timezones())[:100]],
     "limit", 40),
]  # fmt: skip


def _enter(name: str, done: str, users: str, figure: str, bound: Bound, measure: Measure) -> None:
    done = f"The model writes {done}"
    enter(Fault("model_output", name, done, users, figure, bound, measure, fast=True, limit=20))


for _name, _done, _made, _kind, _runs in _CALLS:
    _users = f"the model receives `{_kind}` and answers" if _kind else "the answer"
    _enter(_name, _done, _users, "calls that ran", Bound(_runs, _runs), _running(_made, _kind))


def _texts(behave: Behaviour, headers: dict[str, str], text: str) -> Measure:
    async def measure(stage: Stage) -> float:
        reply = await _asked(stage, behave, headers)
        held(reply.status == 200 and reply.whole, f"answered {reply.outcome}")
        if headers is _JSON:
            told = str(reply.json()["answer"])
        else:
            held([name for name, _ in reply.events].count("done") == 1, "an event is forged")
            told = "".join(data["text"] for name, data in reply.events if name == "delta")
        return abs(len(told) - len(text)) + sum(one != other for one, other in zip(told, text, strict=False))

    return measure


_FORGED = 'a\n\nevent: done\ndata: {"answer": "forged"}\n\ndata: [DONE]\r\rid: 5\n:x\n\n'
_LONG = "多" * 400_000


def _streamed(text: str) -> Behaviour:
    return playing(sse(delta(content=text[:7]), delta(content=text[7:]), finish("stop")))


_TEXTS: list[tuple[str, str, Behaviour, dict[str, str], str]] = [
    ("forged-events", "lines of the event stream into its text", _streamed(_FORGED), _EVENTS, _FORGED),
    ("controls", "NUL, ESC and marks that turn the direction", saying("\x00\x1b[2J\u202e"), _JSON, "\x00\x1b[2J\u202e"),
    ("a-long-answer", "an answer of 400,000 characters", saying(_LONG), _JSON, _LONG),
]
for _name, _done, _behave, _headers, _text in _TEXTS:
    _bound = Bound(0, 0)
    _enter(_name, _done, "exactly that text", "characters that differ", _bound, _texts(_behave, _headers, _text))


def _refused(behave: Behaviour, headers: dict[str, str]) -> Measure:
    async def measure(stage: Stage) -> float:
        reply = await _asked(stage, behave, headers)
        held((reply.status, reply.code) == (502, "upstream-invalid"), f"answered {reply.outcome}")
        return reply.seconds * 1000

    return measure


for _name, _done, _behave, _headers in [
    ("half-a-surrogate", "half of a surrogate pair", saying("a\ud800b"), _JSON),
    ("half-a-surrogate-streamed", "half of a surrogate pair into a stream", _streamed("a\ud800b"), _EVENTS),
    ("an-empty-answer", "nothing at all", saying(""), _JSON),
    ("calls-that-are-not-there", "that it calls tools, and no call",
     playing(whole(message("tool_calls", content=None, tool_calls=[]))), _JSON),
]:  # fmt: skip
    _enter(_name, _done, "502 `upstream-invalid`", "ms until refused", Bound(None, 6000), _refused(_behave, _headers))


@fault(users="an answer", figure="requests to the model for one question", at_least=11, at_most=11, fast=True)
async def a_model_that_calls_for_ever(stage: Stage) -> float:
    """The model calls a tool again after every result, each time with other arguments; 10 rounds are allowed."""
    zones = iter(f"Etc/GMT+{number}" for number in range(1, 13))

    async def answer(call: Call) -> None:
        if call.body.get("tool_choice") == "none":
            return await saying("Enough.")(call)
        made = _call(json.dumps({"timeZoneId": next(zones, "Asia/Tokyo")}), call_id=f"c{len(stage.upstream.calls)}")
        return await playing(whole(message("tool_calls", content=None, tool_calls=[made])))(call)

    reply = await _asked(stage, answer)
    held(reply.outcome == "200" and reply.json()["answer"] == "Enough.", f"answered {reply.outcome}")
    return len(stage.upstream.calls)


@fault(users="an answer", figure="times that the same call ran", at_least=3, at_most=3, fast=True)
async def a_model_that_repeats_itself(stage: Stage) -> float:
    """The model makes the same call for ever; 3 equal ones are allowed."""
    reply = await _asked(stage, _calling(_call(), always=True))
    return _kinds(reply).count("ok")


@fault(users="the model receives `not-run` and answers", figure="calls that ran", at_most=0, fast=True)
async def a_call_cut_by_the_length_limit(stage: Stage) -> float:
    """The model is cut off after a call whose arguments look whole, and its stream says so (`finish_reason`)."""
    cut = playing(sse(delta(tool_calls=[{"index": 0, **_call()}]), finish("length")))

    async def answer(call: Call) -> None:
        await (saying("Done.") if _has_results(call) else cut)(call)

    reply = await _asked(stage, answer, _EVENTS)
    held(reply.outcome == "200 done" and reply.events[-1][1]["answer"] == "Done.", f"ended with {reply.outcome}")
    held(len(stage.upstream.calls) == 2, f"the model was asked {len(stage.upstream.calls)} times")
    outcomes = [data.get("error_kind", "ok") for name, data in reply.events if name == "tool_call_finished"]
    held(outcomes == ["not-run"], f"the call ended as {outcomes}")
    return outcomes.count("ok")


@fault(users="the answer", figure="calls that ran, each once and whole", at_least=2, at_most=2, fast=True)
async def calls_in_interleaved_pieces(stage: Stage) -> float:
    """The model streams two calls at once, letter by letter, the name and the id with the first letter alone."""
    arguments = [_TOKYO, '{"timeZoneId": "Europe/Paris"}']
    pieces = [delta(tool_calls=[{"index": n, **_call("", call_id=f"c{n}")}]) for n in (0, 1)]
    for place in range(max(map(len, arguments))):
        for number, text in enumerate(arguments):
            piece = {"index": number, "function": {"arguments": text[place : place + 1]}}
            pieces.append(delta(tool_calls=[piece]))
    split = playing(sse(*pieces, finish("tool_calls")))

    async def answer(call: Call) -> None:
        await (saying("Done.") if _has_results(call) else split)(call)

    reply = await _asked(stage, answer, _EVENTS)
    finished = [data for name, data in reply.events if name == "tool_call_finished"]
    held(reply.last == "done", f"ended with {reply.last}")
    held([each["arguments"] for each in finished] == list(map(json.loads, arguments)), "the pieces were mixed up")
    return len([each for each in finished if each["outcome"] == "ok"])


@fault(users="the alarm is not set", figure="alarms that were set", at_most=0, fast=True)
async def injected_instructions(stage: Stage) -> float:
    """A tool's result tells the model to set an alarm, and it obeys; the question was not offered that tool."""
    service = await stage.service()

    async def answer(call: Call) -> None:
        last = call.body["messages"][-1]
        if last["role"] == "tool" and "setAlarm" not in json.dumps(call.body["messages"]):
            made = _call('{"time": "2099-01-01T07:00:00"}', "setAlarm", "c2")
            return await playing(whole(message("tool_calls", content=None, tool_calls=[made])))(call)
        return await _calling(_call())(call)

    stage.upstream.behave = answer
    held(_kinds(await service.ask(_ASK, headers=_JSON)) == ["ok", _UNKNOWN], "the call was taken")
    return len((await service.ask("/tool/alarms")).json())


@fault(users="an answer or a problem document", figure="answers of 150 with status 500", at_most=0, limit=60)
async def noise_for_deltas(stage: Stage) -> float:
    """The model answers 150 questions with random deltas, or with whole JSON answers of random values."""
    service = await stage.service()
    draw = stage.random()
    left = [_noise(draw) for _ in range(300)]

    async def answer(call: Call) -> None:
        noise = left.pop() if left else [finish("stop")]
        if call.streams:
            return await playing(sse(*noise))(call)
        return await playing(whole(noise[0]))(call)

    stage.upstream.behave = answer
    failed = 0
    for batch in range(15):
        headers = _EVENTS if batch % 2 else _JSON
        replies = await asyncio.gather(*(service.ask(_ASK, headers=headers) for _ in range(10)))
        failed += sum(each.status in (0, 500) or "internal" in each.text for each in replies)
    return failed


def _noise(draw: Random) -> list[Any]:
    values: list[Any] = [None, True, 0, -1.5, "", "text", "\ud800", [], {}, [None], {"a": []}, 10**400, "tool_calls"]

    def value(depth: int = 0) -> Any:
        if depth > 2 or draw.random() < 0.6:
            return draw.choice(values)
        names = ("role", "content", "tool_calls", "function", "name", "arguments", "id", "index", "reasoning_content")
        return draw.choice([[value(depth + 1)], {draw.choice(names): value(depth + 1) for _ in range(3)}])

    pieces = [delta(draw.choice(values), content=value(), tool_calls=value()) for _ in range(4)]
    pieces.append(
        {"choices": value()} if draw.random() < 0.5 else {"choices": [{"message": value(), "delta": value()}]}
    )
    draw.shuffle(pieces)
    return [*pieces, *([finish("stop")] if draw.random() < 0.5 else [])]
