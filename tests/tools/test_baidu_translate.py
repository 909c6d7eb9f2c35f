"""The translation tool against a local server that plays Baidu, and against the sandbox."""

import asyncio
import json
import logging
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any
from urllib.parse import parse_qsl

import pytest
from pydantic_core import from_json

from app.container import instances, make_container
from app.errors import ConfigurationError, UpstreamError
from app.http import OutboundHttp
from app.sandbox import create_sandbox
from app.settings import read_settings
from app.tool_calling.callback import ToolCallback
from app.tool_calling.context import ToolContext
from app.tool_calling.errors import ToolArgumentsError, ToolExecutionError
from app.tool_calling.function_callback import FunctionToolCallback
from app.tool_calling.method_callback import MethodToolCallbackProvider
from app.tools.baidu_translate import module
from app.tools.baidu_translate.client import BaiduTranslateClient, Translation, sign
from app.tools.baidu_translate.languages import _TABLE, accepted, source_code, target_code
from app.tools.baidu_translate.layout import Layout
from app.tools.baidu_translate.pacing import Pacer
from app.tools.baidu_translate.reactions import _REACTIONS
from app.tools.baidu_translate.settings import BaiduTranslateSettings
from app.tools.baidu_translate.tools import BaiduTranslateService, BaiduTranslateTools
from tests.serving import events_of, service, serving

APP_ID, SECRET_KEY = "2015063000000001", "12345678"
FAST = {"requests_per_second": 1000.0}


@dataclass
class Arrival:
    """A request as it came."""

    form: dict[str, str]
    body: bytes
    head: str
    at: float


@dataclass
class Player:
    """Plays Baidu: scripted answers first, then every line in brackets."""

    answers: list[bytes]
    arrivals: list[Arrival] = field(default_factory=list)
    url: str = ""

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := (await reader.readuntil(b"\r\n\r\n")).decode():
                length = next(
                    int(h.split(":")[1]) for h in head.lower().split("\r\n") if h.startswith("content-length")
                )
                body = await reader.readexactly(length)
                form = dict(parse_qsl(body.decode(), keep_blank_values=True))
                self.arrivals.append(Arrival(form, body, head, time.monotonic()))
                writer.write(self.answers.pop(0) if self.answers else translation(*form["q"].split("\n")))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


def reply(body: bytes, status: str = "200 OK", kind: str = "application/json") -> bytes:
    return f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body


def answer(**fields: Any) -> bytes:
    return reply(json.dumps(fields).encode())


def fault(code: object, **more: Any) -> bytes:
    return answer(error_code=code, error_msg="MESSAGE OF BAIDU", **more)


def translation(*lines: str) -> bytes:
    results = [{"src": line, "dst": f"<{line}>"} for line in lines]
    return answer(**{"from": "zh", "to": "en", "trans_result": results})


def settings(**values: Any) -> BaiduTranslateSettings:
    return BaiduTranslateSettings.model_validate({"app_id": APP_ID, "secret_key": SECRET_KEY, **FAST, **values})


@asynccontextmanager
async def client_of(chosen: BaiduTranslateSettings) -> AsyncGenerator[BaiduTranslateClient, None]:
    http = OutboundHttp()
    try:
        yield BaiduTranslateClient(http, chosen)
    finally:
        await http.aclose()


@asynccontextmanager
async def played(*answers: bytes, **values: Any) -> AsyncGenerator[tuple[BaiduTranslateClient, Player], None]:
    player = Player(list(answers))
    async with await asyncio.start_server(player.handle, "127.0.0.1", 0) as server:
        player.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/translate"
        async with client_of(settings(base_url=player.url, **values)) as client:
            yield client, player


async def error_of(*answers: bytes, text: str = "你好", **values: Any) -> tuple[ToolExecutionError, int]:
    """The error that answers of Baidu lead to, and how many requests were sent."""
    async with played(*answers, **values) as (client, player):
        with pytest.raises(ToolExecutionError) as caught:
            await client.translate(text, "auto", "en")
        return caught.value, len(player.arrivals)


def tools(client: BaiduTranslateClient) -> list[ToolCallback]:
    service = FunctionToolCallback.of(BaiduTranslateService(client))
    return [service, *MethodToolCallbackProvider(BaiduTranslateTools(client)).tool_callbacks()]


# The request


@pytest.mark.parametrize(
    ("text", "expected"),
    [("apple", "f89f9594663708c1605f3d736d01d2d4"), ("你好，世界。", "2d64cbfdbedbfaf22ec2940b08b95388")],
)
def test_the_sign_is_the_md5_of_utf8_bytes(text: str, expected: str) -> None:
    assert sign(APP_ID, text, "1435660288", SECRET_KEY) == expected


async def test_the_request_is_a_signed_form_encoded_once_with_a_fresh_salt() -> None:
    async with played() as (client, player):
        for _ in range(2):
            await client.translate("a+b & 100%=你好", "ZH", "English")
    first, second = player.arrivals
    assert first.head.startswith("POST /translate HTTP/1.1")
    assert "content-type: application/x-www-form-urlencoded" in first.head.lower()
    assert b"q=a%2Bb+%26+100%25%3D%E4%BD%A0%E5%A5%BD" in first.body
    assert {"q": "a+b & 100%=你好", "from": "zh", "to": "en", "appid": APP_ID}.items() <= first.form.items()
    assert first.form["sign"] == sign(APP_ID, first.form["q"], first.form["salt"], SECRET_KEY)
    assert first.form["salt"].isalnum()
    assert first.form["salt"] != second.form["salt"]
    assert SECRET_KEY.encode() not in first.body


# The answer


async def test_every_line_comes_back_in_order_with_the_layout_of_the_original() -> None:
    text = "\n  one\r\n\r\n\t\ntwo \n　three\n\u200b\nfour"
    async with played() as (client, player):
        result = await client.translate(text, "", "en")
    assert player.arrivals[0].form["q"] == "one\ntwo\nthree\nfour"
    assert result.text == "\n  <one>\r\n\r\n\t\n<two> \n　<three>\n\u200b\n<four>"


@pytest.mark.parametrize("text", ["", "x", " x ", "a\nb", "a\n\n b\r\n", "\n", "a\u2028b\x0bc", "a a\na a\n"])
def test_a_layout_filled_with_its_own_lines_is_the_text(text: str) -> None:
    layout = Layout.of(text)
    assert layout.filled_with(layout.lines) == text
    assert all(len(line.splitlines()) == 1 for line in layout.lines)


async def test_both_tools_answer_with_the_detected_language_and_the_text() -> None:
    async with played() as (client, _):
        results = [await tool.call('{"q":"你好","from":"auto","to":"英文"}', ToolContext()) for tool in tools(client)]
    assert [from_json(result) for result in results] == [{"from": "zh", "to": "en", "text": "<你好>"}] * 2


@pytest.mark.parametrize("code", ["52000", 52000, None])
async def test_the_code_of_success_is_no_error(code: object) -> None:
    good = answer(**{"error_code": code, "from": "zh", "to": "en", "trans_result": [{"dst": "Hi"}], "extra": [1]})
    async with played(good) as (client, _):
        assert await client.translate("你好", "auto", "en") == Translation("zh", "en", "Hi")


async def test_an_answer_that_names_no_languages_is_given_those_that_were_asked_for() -> None:
    async with played(answer(**{"from": None, "to": 7, "trans_result": [{"dst": "Hi"}]})) as (client, _):
        assert await client.translate("你好", "中文", "en") == Translation("zh", "en", "Hi")


DEEP = b'{"a":' * 100_000
RESULT = {"src": "你好", "dst": "Hello"}


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(reply(b"<html>hello</html>", kind="text/html"), id="html"),
        pytest.param(reply(b""), id="empty"),
        pytest.param(reply(b'{"from":"zh","trans_'), id="cut json"),
        pytest.param(reply(DEEP), id="deep json"),
        pytest.param(reply(b'{"trans_result":[{"dst":"\\ud800"}]}'), id="lone surrogate"),
        pytest.param(reply(b'{"trans_result":[{"dst":"\xff"}]}'), id="not utf-8"),
        pytest.param(reply(b"[]"), id="list"),
        pytest.param(reply(b"null"), id="null"),
        pytest.param(reply(b'"Hello"'), id="string"),
        pytest.param(answer(), id="empty object"),
        pytest.param(answer(trans_result=None), id="null result"),
        pytest.param(answer(trans_result={"dst": "Hello"}), id="result is an object"),
        pytest.param(answer(trans_result=[]), id="no line"),
        pytest.param(answer(trans_result=[RESULT, RESULT]), id="too many lines"),
        pytest.param(answer(trans_result=["Hello"]), id="line is text"),
        pytest.param(answer(trans_result=[{"src": "你好"}]), id="no translation"),
        pytest.param(answer(trans_result=[{"dst": None}]), id="null translation"),
        pytest.param(answer(trans_result=[{"dst": 5}]), id="numeric translation"),
        pytest.param(answer(trans_result=[{"dst": " "}]), id="blank translation"),
        pytest.param(answer(error_code=True, trans_result=[RESULT]), id="code is a boolean"),
        pytest.param(answer(error_code={"a": 1}, trans_result=[RESULT]), id="code is an object"),
        pytest.param(reply(b'{"error_code":' + b"9" * 4000 + b"}"), id="code is huge"),
        pytest.param(reply(b'{"error_code":' + b"9" * 5000 + b"}"), id="code is beyond integers"),
        pytest.param(fault("<b>"), id="code is markup"),
        pytest.param(reply(b"moved", "302 Found\r\nlocation: http://127.0.0.1:1/"), id="redirect"),
        pytest.param(reply(json.dumps({"trans_result": [RESULT]}).encode(), "403 Forbidden"), id="403 with a result"),
        pytest.param(reply(b"<html>busy</html>", "502 Bad Gateway", "text/html"), id="502"),
        pytest.param(reply(b"slow down", "429 Too Many Requests"), id="429"),
        pytest.param(b"hello\r\n\r\n", id="not http"),
        pytest.param(b"HTTP/1.1 200 OK\r\ncontent-length: 5000000\r\n\r\n" + b" " * 5_000_000, id="too long"),
    ],
)
async def test_what_is_no_answer_of_baidu_is_an_upstream_error_and_never_a_translation(raw: bytes) -> None:
    async with played(raw) as (client, player):
        with pytest.raises(UpstreamError) as caught:
            await client.translate("你好", "auto", "en")
    assert len(player.arrivals) == 1
    assert not {"<html>", "127.0.0.1", "Hello", "<b>"} & set(caught.value.detail.split())


async def test_a_silent_baidu_is_given_up_after_the_time_out() -> None:
    async with played(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n{", timeout=0.1) as (client, _):
        with pytest.raises(UpstreamError, match=r"did not answer within 0\.1 s"):
            await client.translate("你好", "auto", "en")


# Error codes

OPERATOR = {"52003", "54001", "54004", "58000", "58002", "58003", "90107"}


@pytest.mark.parametrize("form", [str, int])
@pytest.mark.parametrize(
    ("code", "kind", "requests"),
    [
        ("52001", "unavailable", 2),
        ("52002", "unavailable", 2),
        ("52003", "not-configured", 1),
        ("54000", "invalid-arguments", 1),
        ("54001", "not-configured", 1),
        ("54004", "unavailable", 1),
        ("58000", "not-configured", 1),
        ("58001", "unsupported-language", 1),
        ("58002", "unavailable", 1),
        ("58003", "unavailable", 1),
        ("90107", "not-configured", 1),
        ("20003", "refused", 1),
        ("12345", "unavailable", 1),
    ],
)
async def test_each_error_code_has_its_own_reaction(
    code: str, kind: str, requests: int, form: Callable[[str], object], caplog: pytest.LogCaptureFixture
) -> None:
    raw = fault(form(code), trans_result=[RESULT])
    error, sent = await error_of(raw, raw, raw)
    assert (error.kind, sent) == (kind, requests)
    assert code in error.message
    assert "MESSAGE OF BAIDU" not in error.as_result()
    warnings = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warnings) == (1 if code in OPERATOR | {"12345"} else 0)
    shown = caplog.text + error.as_result()
    assert SECRET_KEY not in shown
    assert APP_ID not in shown


def test_no_two_error_codes_are_told_in_the_same_words() -> None:
    assert len({reaction.message for reaction in _REACTIONS.values()}) == len(_REACTIONS) == 14


async def test_an_unsupported_direction_lists_the_languages() -> None:
    error, _ = await error_of(fault("58001"))
    assert accepted() in str(error.hint)


@pytest.mark.parametrize("code", ["52001", "52002"])
async def test_a_passing_failure_is_tried_once_more_with_a_new_salt(code: str) -> None:
    async with played(fault(code)) as (client, player):
        assert (await client.translate("你好", "auto", "en")).text == "<你好>"
    first, second = player.arrivals
    assert first.form["salt"] != second.form["salt"]


async def test_a_rate_limit_is_tried_once_more_after_a_second_in_which_nobody_sends() -> None:
    passing = played(fault("54003"), requests_per_second=20)
    lasting = asyncio.create_task(error_of(fault("54003"), fault("54003")))
    async with passing as (client, player):
        results = await asyncio.gather(*(client.translate(text, "auto", "en") for text in "abc"))
    assert [result.text for result in results] == ["<a>", "<b>", "<c>"]
    assert [arrival.form["q"] for arrival in player.arrivals] == ["a", "a", "b", "c"]
    assert player.arrivals[1].at - player.arrivals[0].at >= 0.99
    error, sent = await lasting
    assert (error.kind, sent) == ("busy", 2)
    assert "54003" in error.message


@pytest.mark.parametrize(("code", "quiet"), [("54003", 1), ("54005", 3)])
async def test_a_retry_that_would_come_too_late_is_refused_at_once(code: str, quiet: int) -> None:
    started = time.monotonic()
    error, sent = await error_of(fault(code), max_wait=quiet - 0.2)
    assert (error.kind, sent) == ("busy", 1)
    assert time.monotonic() - started < 0.5


# Limits of a text


@pytest.mark.parametrize(
    ("text", "limit", "kind"),
    [
        ("x" * 1001, 1000, "too-long"),
        ("x" * 6001, 6000, "too-long"),
        ("字" * 2001, 6000, "too-long"),
        ("", 1000, "invalid-arguments"),
        (" \n\t\r\n　", 1000, "invalid-arguments"),
    ],
)
async def test_a_text_outside_the_limits_is_never_sent(text: str, limit: int, kind: str) -> None:
    error, sent = await error_of(text=text, max_chars=limit)
    assert (error.kind, sent) == (kind, 0)
    assert text not in error.message or not text.strip()


@pytest.mark.parametrize(("text", "limit"), [("x" * 1000, 1000), ("字" * 2000, 6000)])
async def test_a_text_at_the_limits_is_sent(text: str, limit: int) -> None:
    async with played(max_chars=limit) as (client, _):
        assert (await client.translate(text, "auto", "en")).text == f"<{text}>"


# Languages

SAME = {
    "zh": "zh ZH zh-CN zh_CN zh-Hans zh-Hans-CN cn Chinese 中文 漢語 简体中文 普通话 (Chinese) ｚｈ zh(Chinese)",
    "en": "en EN en-US en-gb eng English ENGLISH 英语 英文 英語",
    "yue": "yue zh-yue Cantonese 粤语 粵語 广东话",
    "wyw": "wyw lzh 文言文",
    "jp": "jp ja JA ja-JP jpn Japanese 日语 日文 日本語 日本语 japanese(ja)",
    "kor": "kor ko ko-KR Korean 韩语 韓文 한국어",
    "fra": "fra fr fr-CA fre French Français 法语 法文",
    "spa": "spa es es-MX Spanish español 西班牙语",
    "th": "th Thai 泰语 ไทย",
    "ara": "ara ar ar-EG Arabic العربية 阿拉伯语",
    "ru": "ru rus Russian Русский 俄语",
    "pt": "pt pt-BR Portuguese português 葡萄牙语",
    "de": "de de-AT ger deu German Deutsch 德语 德文",
    "it": "it Italian italiano 意大利语",
    "el": "el gre Greek Ελληνικά 希腊语",
    "nl": "nl Dutch Nederlands 荷兰语",
    "pl": "pl Polish polski 波兰语",
    "bul": "bul bg Bulgarian български 保加利亚语",
    "est": "est et Estonian eesti 爱沙尼亚语",
    "dan": "dan da Danish dansk 丹麦语",
    "fin": "fin fi Finnish suomi 芬兰语",
    "cs": "cs ces Czech čeština 捷克语",
    "rom": "rom ro Romanian română 罗马尼亚语",
    "slo": "slo sl Slovenian 斯洛文尼亚语",
    "swe": "swe sv sv-SE Swedish svenska 瑞典语",
    "hu": "hu hun Hungarian magyar 匈牙利语",
    "cht": "cht zh-TW zh-HK zh-Hant zh-Hant-TW zh_tw 繁体中文 繁體中文 繁體",
    "vie": "vie vi vi-VN Vietnamese 越南语",
}


@pytest.mark.parametrize("code", SAME)
def test_codes_and_names_are_put_into_baidus_codes(code: str) -> None:
    assert {name: target_code(name) for name in SAME[code].split()} == dict.fromkeys(SAME[code].split(), code)
    assert source_code(f" {code} ") == code


@pytest.mark.parametrize("name", ["Simplified Chinese", "Chinese (Simplified)", "Mandarin  Chinese", "zh (Chinese)"])
def test_names_of_several_words_are_known(name: str) -> None:
    assert target_code(name) == "zh"
    assert target_code("Chinese (Traditional)") == target_code("Traditional Chinese") == "cht"


@pytest.mark.parametrize("name", ["", " ", "auto", "AUTO", "自动", "自動檢測"])
def test_a_source_may_be_left_to_detection_and_a_target_may_not(name: str) -> None:
    assert source_code(name) == "auto"
    with pytest.raises(ToolExecutionError, match="'to' must name one language"):
        target_code(name)


@pytest.mark.parametrize(
    "name", ["Klingon", "tlh", "uk", "x-en", "en-", "英", "zh\0", "-" * 100_000, "e" * 100_000, "语"]
)
def test_an_unknown_language_is_answered_with_the_list(name: str) -> None:
    for lookup in (source_code, target_code):
        with pytest.raises(ToolExecutionError) as caught:
            lookup(name)
        assert caught.value.kind == "unsupported-language"
        assert "jp (Japanese), kor (Korean)" in str(caught.value.hint)
        assert len(caught.value.message) < 200


def test_no_name_belongs_to_two_languages() -> None:
    rows = [row.split("|") for row in _TABLE.splitlines()]
    names = [name.strip() for row in rows for name in (row[0], row[1], *row[2].split(), *row[3].split(","))]
    assert len(rows) == 28
    assert sorted(names) == sorted(set(names))


async def test_a_translation_into_the_same_language_is_left_to_baidu() -> None:
    async with played() as (client, player):
        await client.translate("hello", "en", "English")
    assert (player.arrivals[0].form["from"], player.arrivals[0].form["to"]) == ("en", "en")


# Pace


async def test_calls_at_once_arrive_in_order_and_never_closer_than_the_rate_allows() -> None:
    async with played(requests_per_second=25) as (client, player):
        await client.translate("warm up", "auto", "en")
        player.arrivals.clear()
        calls = [tool.call(json.dumps({"q": f"{i}", "from": "", "to": "en"}), ToolContext())
                 for i in range(5) for tool in tools(client)]  # fmt: skip
        await asyncio.gather(*calls)
    assert [arrival.form["q"] for arrival in player.arrivals] == [f"{i}" for i in range(5) for _ in range(2)]
    times = [arrival.at for arrival in player.arrivals]
    assert times[-1] - times[0] >= 9 * 0.04 - 0.02
    assert all(later - earlier > 0.02 for earlier, later in pairwise(times))


async def test_a_rate_below_one_keeps_requests_seconds_apart() -> None:
    pacer = Pacer(rate=0.5, max_wait=1.9)
    await pacer.turn()
    with pytest.raises(ToolExecutionError, match=r"its turn would be (2\.0|1\.9) s away"):
        await pacer.turn()


async def test_a_wait_beyond_the_limit_is_refused_at_once_and_the_others_keep_their_turns() -> None:
    async with played(requests_per_second=20, max_wait=0.12) as (client, player):
        started = time.monotonic()
        tasks = [asyncio.create_task(client.translate(f"{i}", "auto", "en")) for i in range(6)]
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        assert time.monotonic() - started < 0.1
        results = await asyncio.gather(*tasks, return_exceptions=True)
    errors = [each for each in results if isinstance(each, ToolExecutionError)]
    assert [error.kind for error in errors] == ["busy"] * 3
    assert "one per line" in str(errors[0].hint)
    assert [arrival.form["q"] for arrival in player.arrivals] == ["0", "1", "2"]
    assert done


async def test_a_waiting_call_that_is_cancelled_gives_its_turn_back() -> None:
    pacer = Pacer(rate=20, max_wait=10)
    await pacer.turn()
    started = time.monotonic()
    waiting = [asyncio.create_task(pacer.turn()) for _ in range(5)]
    await asyncio.sleep(0)
    for task in waiting[:4]:
        task.cancel()
    await waiting[4]
    assert 0.03 <= time.monotonic() - started < 0.12
    assert [task.cancelled() for task in waiting] == [True] * 4 + [False]


@pytest.mark.parametrize("moment", [pytest.param(0.1, id="just before"), pytest.param(0.22, id="just after")])
async def test_a_turn_given_in_the_moment_of_a_cancellation_goes_to_the_next(
    moment: float, caplog: pytest.LogCaptureFixture
) -> None:
    pacer = Pacer(rate=5, max_wait=10)
    await pacer.turn()
    first, second = (asyncio.create_task(pacer.turn()) for _ in range(2))
    await asyncio.sleep(0)
    asyncio.get_running_loop().call_later(moment, first.cancel)
    time.sleep(0.25)  # noqa: ASYNC251 - a stalled loop runs both timers before either task
    stalled_until = time.monotonic()
    await second
    assert first.cancelled()
    assert time.monotonic() - stalled_until < 0.1
    assert not caplog.records


async def test_a_newcomer_does_not_overtake_a_call_whose_turn_is_overdue() -> None:
    pacer = Pacer(rate=50, max_wait=10)
    order: list[str] = []

    async def taking(name: str) -> None:
        await pacer.turn()
        order.append(name)

    await taking("first")
    waiting = asyncio.create_task(taking("second"))
    await asyncio.sleep(0)
    time.sleep(0.1)  # noqa: ASYNC251 - a stalled loop lets the turn become overdue
    await taking("third")
    await waiting
    assert order == ["first", "second", "third"]


async def test_a_call_held_up_beyond_its_patience_is_refused() -> None:
    pacer = Pacer(rate=50, max_wait=0.1)
    await pacer.turn()
    waiting = asyncio.create_task(pacer.turn())
    await asyncio.sleep(0)
    pacer.hold(1)
    with pytest.raises(ToolExecutionError) as caught:
        await waiting
    assert caught.value.kind == "busy"
    assert not pacer._line


# Settings and wiring


def test_both_secrets_are_required_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("BAIDU_TRANSLATE_APP_ID", "BAIDU_TRANSLATE_SECRET_KEY", "SANDBOX_URL"):
        monkeypatch.delenv(name, raising=False)
    wanted = "not configured: set BAIDU_TRANSLATE_APP_ID and BAIDU_TRANSLATE_SECRET_KEY"
    assert read_settings(BaiduTranslateSettings).fault() == wanted
    monkeypatch.setenv("SANDBOX_URL", "http://127.0.0.1:1")
    assert read_settings(BaiduTranslateSettings).fault() is None


@pytest.mark.parametrize(
    ("name", "value"), [("REQUESTS_PER_SECOND", "0"), ("MAX_CHARS", "6001"), ("BASE_URL", "ftp://x"), ("TIMEOUT", "0")]
)
def test_a_setting_that_cannot_work_stops_the_start(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"BAIDU_TRANSLATE_{name}", value)
    with pytest.raises(ConfigurationError, match=f"BAIDU_TRANSLATE_{name}: "):
        read_settings(BaiduTranslateSettings)


def test_the_tools_are_named_and_described_as_documented() -> None:
    definitions = [each.definition for each in tools(BaiduTranslateClient(OutboundHttp(), settings()))]
    assert [each.name for each in definitions] == ["baiduTranslateFunction", "baiduTranslateMethod"]
    assert {each.description for each in definitions} == {"Baidu translation function for general text translation"}
    for schema in (each.input_schema for each in definitions):
        assert schema["required"] == ["q", "from", "to"]
        assert {name: each["description"] for name, each in schema["properties"].items()} == {
            "q": "Content that needs to be translated",
            "from": "Source language that needs to be translated",
            "to": "Target language to translate into",
        }
        assert schema["additionalProperties"] is False
    assert (module.path, module.default_query) == ("/translate", "帮我把以下内容翻译成英文：你好，世界。")


@pytest.mark.parametrize("text", ['{"q":"x","from":"en"}', '{"q":null,"from":"en","to":"zh"}', '{"q":"\\ud800"}', "[]"])
async def test_arguments_that_do_not_fit_are_refused_unsent(text: str) -> None:
    async with played() as (client, player):
        for tool in tools(client):
            with pytest.raises(ToolArgumentsError):
                await tool.call(text, ToolContext())
    assert not player.arrivals


async def test_equal_questions_at_once_take_one_turn_at_baidu() -> None:
    """With one request per second the later ones would else be refused; the trace in events says so too."""
    async with played() as (_, player):
        environment = {"APP_ID": APP_ID, "SECRET_KEY": SECRET_KEY, "BASE_URL": player.url, "MAX_WAIT": "0"}
        async with service(**{f"BAIDU_TRANSLATE_{name}": value for name, value in environment.items()}) as http:
            path, wanted = "/translate/chat-tool-function", {"Accept": "text/event-stream"}
            replies = await asyncio.gather(*(http.get(path, headers=wanted) for _ in range(20)))
    ends = [event.data for each in replies for event in events_of(each.text) if event.name == "tool_call_finished"]
    assert [each["outcome"] for each in ends] == ["ok"] * 20
    assert sum(each.get("cached", False) for each in ends) == 19
    assert len(player.arrivals) == 1


async def test_the_settings_say_how_long_translations_are_kept() -> None:
    http = OutboundHttp()
    for seconds in (0, 7, 3600):
        chosen = settings(cache_seconds=seconds)
        container = make_container([instances(http), *module.in_folder("baidu_translate").providers(chosen)])
        callback = await container.get(ToolCallback, component="baiduTranslateFunction")
        methods = MethodToolCallbackProvider(await container.get(BaiduTranslateTools)).tool_callbacks()
        assert [each.metadata.cache_seconds for each in (callback, *map(chosen.applied_to, methods))] == [seconds] * 2
        await container.close()
    await http.aclose()


async def test_in_the_sandbox_no_real_key_is_sent() -> None:
    async with played() as (_, player), client_of(settings(SANDBOX_URL=player.url)) as client:
        await client.translate("你好", "auto", "en")
    (arrival,) = player.arrivals
    assert arrival.head.startswith("POST /translate/baidu/api/trans/vip/translate HTTP/1.1")
    assert arrival.form["appid"] == "sandbox"
    assert arrival.form["sign"] == sign("sandbox", "你好", arrival.form["salt"], "sandbox")


async def test_the_sandbox_answers_both_tools_from_its_phrase_book() -> None:
    async with serving(create_sandbox()) as url, client_of(settings(SANDBOX_URL=url)) as client:
        question = '{"q":"你好，世界。\\n\\n谢谢！","from":"auto","to":"en"}'
        results = [await tool.call(question, ToolContext()) for tool in tools(client)]
    assert [from_json(each) for each in results] == [
        {"from": "zh", "to": "en", "text": "Hello, world.\n\nThank you!"}
    ] * 2


async def test_every_error_of_the_sandbox_reaches_the_model_as_an_error() -> None:
    asked = {code: f"error:{code}" for code in _REACTIONS if code not in ("54003", "54005")}
    kinds: dict[str, set[str]] = {code: set() for code in asked}
    async with serving(create_sandbox()) as url, client_of(settings(SANDBOX_URL=url)) as client:
        for code, text in asked.items():
            for tool in tools(client):
                with pytest.raises(ToolExecutionError) as caught:
                    await tool.call(json.dumps({"q": text, "from": "auto", "to": "en"}), ToolContext())
                kinds[code].add(caught.value.kind)
    assert kinds == {code: {_REACTIONS[code].kind} for code in asked}


async def test_the_sandbox_is_asked_without_a_pace() -> None:
    """It has no plan; at one request per second and no waiting, the second of two questions would be refused."""
    async with serving(create_sandbox()) as url, client_of(settings(SANDBOX_URL=url, max_wait=0)) as client:
        for text in ("谢谢", "你好", "再见"):
            await client.translate(text, "zh", "en")
