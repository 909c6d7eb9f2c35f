"""What is sent to Baidu, and what never is."""

import pytest

from app.tools.baidu_translate.client import sign
from tests.tools.baidu_translate.baidu_player import APP_ID, SECRET_KEY, error_of, played, tools
from toolchat.tool_calling.context import ToolContext
from toolchat.tool_calling.errors import ToolArgumentsError


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


@pytest.mark.parametrize("text", ['{"q":"x","from":"en"}', '{"q":null,"from":"en","to":"zh"}', '{"q":"\\ud800"}', "[]"])
async def test_arguments_that_do_not_fit_are_refused_unsent(text: str) -> None:
    async with played() as (client, player):
        for tool in tools(client):
            with pytest.raises(ToolArgumentsError):
                await tool.call(text, ToolContext())
    assert not player.arrivals


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
