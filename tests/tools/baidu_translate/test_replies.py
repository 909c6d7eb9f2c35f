"""Baidu's answers: translations, error codes, and what is none."""

import asyncio
import json
import logging
import re
from collections.abc import Callable

import pytest

from app.tools.baidu_translate.client import Layout
from app.tools.baidu_translate.languages import BAIDU
from app.tools.baidu_translate.translator import Translation
from tests.tools.baidu_translate.baidu_player import (
    APP_ID,
    RESULT,
    SECRET_KEY,
    answer,
    error_of,
    fault,
    played,
    reply,
)
from toolchat.errors import UpstreamError


async def test_every_line_comes_back_in_order_with_the_layout_of_the_original() -> None:
    text = "\n  one\r\n\r\n\t\ntwo \n　three\n\u200b\nfour"
    async with played() as (client, player):
        result = await client.translate(text, "", "en")
    assert player.arrivals[0].form["q"] == "one\ntwo\nthree\nfour"
    assert result.text == "\n  <one>\r\n\r\n\t\n<two> \n　<three>\n\u200b\n<four>"


@pytest.mark.parametrize("text", ["", "x", " x ", "a\nb", "a\n\n b\r\n", "\n", "a\u2028b\x0bc", "a a\na a\n"])
def test_a_layout_filled_with_its_own_lines_is_the_text(text: str) -> None:
    layout = Layout.split(text)
    assert layout.filled_with(layout.lines) == text
    assert all(len(line.splitlines()) == 1 for line in layout.lines)


@pytest.mark.parametrize("code", ["52000", 52000, None])
async def test_the_code_of_success_is_no_error(code: object) -> None:
    good = answer(**{"error_code": code, "from": "zh", "to": "en", "trans_result": [{"dst": "Hi"}], "extra": [1]})
    async with played(good) as (client, _):
        assert await client.translate("你好", "auto", "en") == Translation("zh", "en", "Hi")


async def test_a_response_without_languages_gets_the_requested_ones() -> None:
    async with played(answer(**{"from": None, "to": 7, "trans_result": [{"dst": "Hi"}]})) as (client, _):
        assert await client.translate("你好", "中文", "en") == Translation("zh", "en", "Hi")


DEEP = b'{"a":' * 100_000


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


async def test_an_unsupported_direction_lists_the_languages() -> None:
    error, _ = await error_of(fault("58001"))
    assert BAIDU.accepted in str(error.hint)


@pytest.mark.parametrize("code", ["52001", "52002"])
async def test_a_passing_failure_is_tried_once_more_with_a_new_salt(code: str) -> None:
    async with played(fault(code)) as (client, player):
        assert (await client.translate("你好", "auto", "en")).text == "<你好>"
    first, second = player.arrivals
    assert first.form["salt"] != second.form["salt"]


@pytest.mark.slow
async def test_a_rate_limit_error_is_retried_once_after_a_second_without_requests() -> None:
    # The others stand in line already when Baidu refuses the first; their turns would come in that second.
    async with played(fault("54003"), requests_per_second=3) as (client, player):
        results = await asyncio.gather(*(client.translate(text, "auto", "en") for text in "abc"))
    assert [result.text for result in results] == ["<a>", "<b>", "<c>"]
    assert [arrival.form["q"] for arrival in player.arrivals] == ["a", "a", "b", "c"]
    assert player.arrivals[1].at - player.arrivals[0].at >= 0.99


@pytest.mark.slow
async def test_a_rate_limit_that_lasts_is_busy_after_the_second_try() -> None:
    error, sent = await error_of(fault("54003"), fault("54003"))
    assert (error.kind, sent) == ("busy", 2)
    assert "54003" in error.message


@pytest.mark.parametrize(("code", "quiet"), [("54003", 1), ("54005", 3)])
async def test_a_retry_that_would_come_too_late_is_refused_at_once(code: str, quiet: int) -> None:
    error, sent = await error_of(fault(code), max_wait=quiet / 2)
    assert (error.kind, sent) == ("busy", 1)
    # A refusal at once tells the wait that it foresees; a call that had waited in vain would tell its own patience.
    (away,) = re.findall(r"would be (\d\.\d) s away", error.message)
    assert 0.75 * quiet < float(away) <= quiet
