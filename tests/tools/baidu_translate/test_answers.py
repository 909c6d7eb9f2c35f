"""Baidu's answers: translations, and what is none."""

import json

import pytest

from app.tools.baidu_translate.client import Layout, Translation
from tests.tools.baidu_translate.baidu_player import RESULT, answer, fault, played, reply
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
