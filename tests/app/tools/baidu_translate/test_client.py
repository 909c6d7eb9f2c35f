"""What is sent to Baidu and to the sandbox, and Baidu's answers: translations, error codes, and what is none."""

import asyncio
import json
import logging
import re
from collections.abc import Callable

import pytest

from app.tools.baidu_translate.client import Layout, sign
from app.tools.baidu_translate.languages import BAIDU
from tests.app.tools.baidu_translate.baidu_player import (
    APP_ID,
    RESULT,
    SECRET_KEY,
    answer,
    client_of,
    error_of,
    fault,
    played,
    reply,
    settings,
)
from toolchat.errors import UpstreamError
from toolchat.tool_calling.errors import ToolExecutionError


async def test_every_line_comes_back_in_order_with_the_layout_of_the_original() -> None:
    text = "\n  one\r\n\r\n\t\ntwo \n　three\n\u200b\nfour"
    async with played() as (client, player):
        result = await client.translate(text, "", "en")
    assert player.arrivals[0].form["q"] == "one\ntwo\nthree\nfour"
    assert result["text"] == "\n  <one>\r\n\r\n\t\n<two> \n　<three>\n\u200b\n<four>"


@pytest.mark.parametrize("text", ["", "x", " x ", "a\nb", "a\n\n b\r\n", "\n", "a\u2028b\x0bc", "a a\na a\n"])
def test_a_layout_filled_with_its_own_lines_is_the_text(text: str) -> None:
    layout = Layout.split(text)
    assert layout.filled_with(layout.lines) == text
    assert all(len(line.splitlines()) == 1 for line in layout.lines)


@pytest.mark.parametrize("code", ["52000", 52000, None])
async def test_the_code_of_success_is_no_error(code: object) -> None:
    good = answer(**{"error_code": code, "from": "zh", "to": "en", "trans_result": [{"dst": "Hi"}], "extra": [1]})
    async with played(good) as (client, _):
        assert await client.translate("你好", "auto", "en") == {"from": "zh", "to": "en", "text": "Hi"}


async def test_a_response_without_languages_gets_the_requested_ones() -> None:
    async with played(answer(**{"from": None, "to": 7, "trans_result": [{"dst": "Hi"}]})) as (client, _):
        assert await client.translate("你好", "中文", "en") == {"from": "zh", "to": "en", "text": "Hi"}


DEEP = b'{"a":' * 100_000


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(reply(b"<html>hello</html>", kind="text/html"), id="html"),
        pytest.param(reply(b'{"from":"zh","trans_'), id="cut json"),
        pytest.param(reply(DEEP), id="deep json"),
        pytest.param(reply(b'{"trans_result":[{"dst":"\\ud800"}]}'), id="lone surrogate"),
        pytest.param(answer(trans_result=[]), id="no line"),
        pytest.param(answer(trans_result=[RESULT, RESULT]), id="too many lines"),
        pytest.param(answer(trans_result=[{"src": "你好"}]), id="no translation"),
        pytest.param(answer(trans_result=[{"dst": " "}]), id="blank translation"),
        pytest.param(answer(error_code=True, trans_result=[RESULT]), id="code is a boolean"),
        pytest.param(reply(b'{"error_code":' + b"9" * 5000 + b"}"), id="code is beyond integers"),
        pytest.param(fault("<b>"), id="code is markup"),
        pytest.param(reply(b"moved", "302 Found\r\nlocation: http://127.0.0.1:1/"), id="redirect"),
        pytest.param(reply(json.dumps({"trans_result": [RESULT]}).encode(), "403 Forbidden"), id="403 with a result"),
        pytest.param(reply(b"<html>busy</html>", "502 Bad Gateway", "text/html"), id="502"),
        pytest.param(b"HTTP/1.1 200 OK\r\ncontent-length: 5000000\r\n\r\n" + b" " * 5_000_000, id="too long"),
    ],
)
async def test_an_invalid_response_of_baidu_is_an_upstream_error(raw: bytes) -> None:
    async with played(raw) as (client, player):
        with pytest.raises(UpstreamError) as caught:
            await client.translate("你好", "auto", "en")
    assert len(player.arrivals) == 1
    assert not {"<html>", "127.0.0.1", "Hello", "<b>"} & set(caught.value.detail.split())


async def test_a_request_to_a_silent_baidu_times_out() -> None:
    async with played(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n{", timeout=0.1) as (client, _):
        with pytest.raises(UpstreamError, match=r"did not answer within 0\.1 s"):
            await client.translate("你好", "auto", "en")


OPERATOR = {"52003", "54001", "54004", "58000", "58002", "58003", "90107"}


@pytest.mark.parametrize("form", [str, int])
@pytest.mark.parametrize(
    ("code", "kind", "requests"),
    [
        ("52001", "unavailable", 2),
        ("52002", "unavailable", 2),
        ("52003", "provider-auth", 1),
        ("54000", "invalid-arguments", 1),
        ("54001", "provider-auth", 1),
        ("54004", "provider-quota", 1),
        ("58000", "provider-auth", 1),
        ("58001", "unsupported-language", 1),
        ("58002", "unavailable", 1),
        ("58003", "unavailable", 1),
        ("90107", "provider-auth", 1),
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


@pytest.mark.parametrize("code", ["52001", "52002"])
async def test_a_passing_failure_is_tried_once_more_with_a_new_salt(code: str) -> None:
    async with played(fault(code)) as (client, player):
        assert (await client.translate("你好", "auto", "en"))["text"] == "<你好>"
    first, second = player.arrivals
    assert first.form["salt"] != second.form["salt"]


@pytest.mark.slow
async def test_a_rate_limit_error_is_retried_once_after_a_second_without_requests() -> None:
    # The others stand in line already when Baidu refuses the first; their turns would come in that second.
    async with played(fault("54003"), requests_per_second=3) as (client, player):
        results = await asyncio.gather(*(client.translate(text, "auto", "en") for text in "abc"))
    assert [result["text"] for result in results] == ["<a>", "<b>", "<c>"]
    assert [arrival.form["q"] for arrival in player.arrivals] == ["a", "a", "b", "c"]
    assert player.arrivals[1].at - player.arrivals[0].at >= 0.99


@pytest.mark.parametrize(("code", "quiet"), [("54003", 1), ("54005", 3)])
async def test_a_retry_that_would_come_too_late_is_refused_at_once(code: str, quiet: int) -> None:
    error, sent = await error_of(fault(code), max_wait=quiet / 2)
    assert (error.kind, sent) == ("busy", 1)
    # A refusal at once tells the wait that it foresees; a call that had waited in vain would tell its own patience.
    (away,) = re.findall(r"would be (\d\.\d) s away", error.message)
    assert quiet / 2 < float(away) <= quiet


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


@pytest.mark.parametrize(
    ("text", "rate", "kind"),
    [
        ("x" * 1001, 1, "too-long"),
        ("x" * 6001, 10, "too-long"),
        ("字" * 2001, 10, "too-long"),
        ("", 1, "invalid-arguments"),
        (" \n\t\r\n　", 1, "invalid-arguments"),
    ],
)
async def test_a_text_outside_the_limits_is_never_sent(text: str, rate: int, kind: str) -> None:
    error, sent = await error_of(text=text, requests_per_second=rate)
    assert (error.kind, sent) == (kind, 0)
    assert text not in error.message or not text.strip()


@pytest.mark.parametrize(("text", "rate"), [("x" * 1000, 1), ("字" * 2000, 10)])
async def test_a_text_at_the_limits_is_sent(text: str, rate: int) -> None:
    async with played(requests_per_second=rate) as (client, _):
        assert (await client.translate(text, "auto", "en"))["text"] == f"<{text}>"


async def test_in_the_sandbox_no_real_key_is_sent() -> None:
    async with played() as (_, player), client_of(settings(SANDBOX_URL=player.url)) as client:
        await client.translate("你好", "auto", "en")
    (arrival,) = player.arrivals
    assert arrival.head.startswith("POST /translate/baidu/api/trans/vip/translate HTTP/1.1")
    assert arrival.form["appid"] == "sandbox"
    assert arrival.form["sign"] == sign("sandbox", "你好", arrival.form["salt"], "sandbox")


async def test_requests_to_the_sandbox_are_not_rate_limited() -> None:
    # It has no plan; at one request per second and no waiting, the second of two questions would be refused.
    async with (
        played() as (_, player),
        client_of(settings(SANDBOX_URL=player.url, requests_per_second=1), max_wait=0) as client,
    ):
        for text in ("谢谢", "你好", "再见"):
            await client.translate(text, "zh", "en")


SAME = {
    "zh": "zh ZH zh-CN zh_CN zh-Hans zh-Hans-CN cn Chinese 中文 漢語 简体中文 普通话 (Chinese) ｚｈ zh(Chinese)",
    "en": "en EN en-US en-gb eng English ENGLISH 英语 英文 英語",
    "yue": "yue zh-yue Cantonese 粤语 粵語 广东话",
    "jp": "jp ja JA ja-JP jpn Japanese 日语 日文 日本語 日本语 japanese(ja)",
    "kor": "kor ko ko-KR Korean 韩语 韓文 한국어",
    "fra": "fra fr fr-CA fre French Français 法语 法文",
    "ara": "ara ar ar-EG Arabic العربية 阿拉伯语",
    "cht": "cht zh-TW zh-HK zh-Hant zh-Hant-TW zh_tw 繁体中文 繁體中文 繁體",
    "vie": "vie vi vi-VN Vietnamese 越南语",
}


@pytest.mark.parametrize("code", SAME)
def test_codes_and_names_are_put_into_baidus_codes(code: str) -> None:
    assert {name: BAIDU.target(name) for name in SAME[code].split()} == dict.fromkeys(SAME[code].split(), code)
    assert BAIDU.source(f" {code} ") == code


@pytest.mark.parametrize("name", ["", " ", "auto", "AUTO", "自动", "自動檢測"])
def test_a_source_may_be_left_to_detection_and_a_target_may_not(name: str) -> None:
    assert BAIDU.source(name) == "auto"
    with pytest.raises(ToolExecutionError, match="'to' must name one language"):
        BAIDU.target(name)


@pytest.mark.parametrize(
    "name", ["Klingon", "tlh", "uk", "x-en", "en-", "英", "zh\0", "-" * 100_000, "e" * 100_000, "语"]
)
def test_an_unknown_language_is_answered_with_the_list(name: str) -> None:
    for lookup in (BAIDU.source, BAIDU.target):
        with pytest.raises(ToolExecutionError) as caught:
            lookup(name)
        assert caught.value.kind == "unsupported-language"
        assert "jp (Japanese), kor (Korean)" in str(caught.value.hint)
        assert len(caught.value.message) < 200
