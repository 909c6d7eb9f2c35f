"""Streams of Anthropic's API: the events in the order in which its clients read them."""

from typing import Any

from tests.players.openai_player import body, chunk, delta, finish, sse
from tests.protocols.anthropic.asking import MESSAGES, ROLL, error_of, events_of, sent, text, user
from tests.protocols.openai.asking import call, played
from toolchat.service.settings.service_settings import Tuning

TIME = call("getCityTimeFunction", '{"timeZoneId":"Asia/Shanghai"}', "call_time")
ROLLED = call("roll", '{"sides":6}', "call_roll")
USAGE = chunk(usage={"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10})
HELLO = sse(delta(content="Hel"), delta(content="lo"), delta(content="."), finish("stop"), USAGE)


def outline(events: list[dict[str, Any]]) -> list[str]:
    """Each event's type, with the index of its block."""
    return [f"{each['type'].removeprefix('content_block_')} {each.get('index', '')}".strip() for each in events]


def usage(given: int, written: int) -> dict[str, int]:
    cache = {"cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
    return {"input_tokens": given, **cache, "output_tokens": written}


async def test_text_arrives_in_pieces_between_the_begin_and_the_end_of_its_block() -> None:
    async with played([HELLO]) as (client, _):
        answer = await sent(client, stream=True)
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    begin, opened, *pieces, closed, ended, stopped = events_of(answer.text)
    assert (begin["message"]["content"], begin["message"]["stop_reason"]) == ([], None)
    assert begin["message"]["usage"] == usage(0, 0)
    assert opened == {"type": "content_block_start", "index": 0, "content_block": text("")}
    assert [(each["index"], each["delta"]) for each in pieces] == [
        (0, {"type": "text_delta", "text": piece}) for piece in ("Hel", "lo", ".")
    ]
    assert closed == {"type": "content_block_stop", "index": 0}
    assert (ended["delta"]["stop_reason"], ended["usage"]) == ("end_turn", usage(7, 3))
    assert stopped == {"type": "message_stop"}


async def test_calls_are_blocks_of_their_own_and_only_the_clients_input_comes_as_a_delta() -> None:
    calls = [{"index": number, **each} for number, each in enumerate((TIME, ROLLED))]
    first = sse(delta(content="Wait."), delta(tool_calls=calls), finish("tool_calls"), USAGE)
    async with played([first]) as (client, _):
        answer = await sent(client, user("Roll"), tools=[ROLL], stream=True)
    events = events_of(answer.text)
    assert outline(events) == [
        "message_start",
        *("start 0", "delta 0", "stop 0"),
        *("start 1", "stop 1"),
        *("start 2", "stop 2"),
        *("start 3", "delta 3", "stop 3"),
        *("message_delta", "message_stop"),
    ]
    _, used, known, rolled = [each["content_block"] for each in events if each["type"] == "content_block_start"]
    assert (used["type"], used["input"]) == ("mcp_tool_use", {"timeZoneId": "Asia/Shanghai"})
    assert (known["type"], known["tool_use_id"]) == ("mcp_tool_result", used["id"])
    assert (rolled["type"], rolled["name"], rolled["input"]) == ("tool_use", "roll", {})
    assert events[-4]["delta"] == {"type": "input_json_delta", "partial_json": '{"sides":6}'}
    assert events[-2]["delta"]["stop_reason"] == "tool_use"


async def test_text_after_a_call_is_a_block_of_its_own() -> None:
    first = sse(delta(content="Wait."), delta(tool_calls=[{"index": 0, **TIME}]), finish("tool_calls"))
    async with played([first, HELLO]) as (client, _):
        events = events_of((await sent(client, stream=True)).text)
    pieces = [(each["index"], each["delta"]["text"]) for each in events if each["type"] == "content_block_delta"]
    assert pieces == [(0, "Wait."), (3, "Hel"), (3, "lo"), (3, ".")]


async def test_the_usage_of_an_agent_is_that_of_the_last_round() -> None:
    first = sse(delta(tool_calls=[{"index": 0, **TIME}]), finish("tool_calls"), USAGE)
    async with played([first, HELLO] * 2) as (client, _):
        agent, plain = [events_of((await sent(client, stream=True, **each)).text) for each in ({"tools": [ROLL]}, {})]
    assert (agent[-2]["usage"], plain[-2]["usage"]) == (usage(7, 3), usage(14, 6))


async def test_a_silent_model_leads_to_pings() -> None:
    hangs = [sse(delta(), done=False, ending="hang")]
    async with (
        played(hangs, Tuning(stream_begin=0.05, stream_keep_alive=0.05)) as (client, _),
        client.stream("POST", MESSAGES, json={"model": "toolchat", "messages": [user("?")], "stream": True}) as answer,
    ):
        lines = [line async for line in _first(answer.aiter_lines(), 6)]
    assert [line for line in lines if line.startswith("event: ")] == ["event: message_start", "event: ping"]
    assert 'data: {"type":"ping"}' in lines


async def _first(lines: Any, count: int) -> Any:
    async for line in lines:
        yield line
        count -= 1
        if not count:
            return


async def test_an_error_within_a_stream_is_its_last_event() -> None:
    broken = sse(delta(content="Hel"), done=False, ending="reset")
    async with played([broken]) as (client, _):
        *_, last = events_of((await sent(client, stream=True)).text)
    assert (last["type"], last["error"]["type"]) == ("error", "api_error")


async def test_an_error_before_a_stream_has_its_status() -> None:
    async with played([body(b"{}", 429)]) as (client, _):
        answer = await sent(client, stream=True)
    assert error_of(answer)[:2] == (429, "rate_limit_error")
