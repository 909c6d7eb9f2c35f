"""What is sent to Baidu and to the sandbox, in which languages, and what never is."""

from collections.abc import AsyncGenerator

import pytest
from pydantic_core import from_json

from app.tools.baidu_translate.client import BaiduTranslateClient, sign
from app.tools.baidu_translate.languages import BAIDU
from tests.serving import serving
from tests.tools.baidu_translate.baidu_player import APP_ID, SECRET_KEY, client_of, error_of, played, settings, tools
from tests.upstreams import create_sandbox
from toolchat.tool_calling.context import ToolContext
from toolchat.tool_calling.errors import ToolArgumentsError, ToolExecutionError


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
        assert (await client.translate(text, "auto", "en")).text == f"<{text}>"


@pytest.fixture(scope="module")
async def sandbox() -> AsyncGenerator[str, None]:
    """The address of a sandbox; no test asks for an answer of which it remembers something."""
    async with serving(create_sandbox()) as url:
        yield url


@pytest.fixture
async def client(sandbox: str) -> AsyncGenerator[BaiduTranslateClient, None]:
    async with client_of(settings(SANDBOX_URL=sandbox)) as client:
        yield client


async def test_in_the_sandbox_no_real_key_is_sent() -> None:
    async with played() as (_, player), client_of(settings(SANDBOX_URL=player.url)) as client:
        await client.translate("你好", "auto", "en")
    (arrival,) = player.arrivals
    assert arrival.head.startswith("POST /translate/baidu/api/trans/vip/translate HTTP/1.1")
    assert arrival.form["appid"] == "sandbox"
    assert arrival.form["sign"] == sign("sandbox", "你好", arrival.form["salt"], "sandbox")


async def test_the_sandbox_answers_both_tools_from_its_phrase_book(client: BaiduTranslateClient) -> None:
    question = '{"q":"你好，世界。\\n\\n谢谢！","from":"auto","to":"en"}'
    results = [await tool.call(question, ToolContext()) for tool in tools(client)]
    assert [from_json(each) for each in results] == [
        {"from": "zh", "to": "en", "text": "Hello, world.\n\nThank you!"}
    ] * 2


async def test_requests_to_the_sandbox_are_not_rate_limited(sandbox: str) -> None:
    # It has no plan; at one request per second and no waiting, the second of two questions would be refused.
    async with client_of(settings(SANDBOX_URL=sandbox, requests_per_second=1), max_wait=0) as client:
        for text in ("谢谢", "你好", "再见"):
            await client.translate(text, "zh", "en")


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
    assert {name: BAIDU.target(name) for name in SAME[code].split()} == dict.fromkeys(SAME[code].split(), code)
    assert BAIDU.source(f" {code} ") == code


@pytest.mark.parametrize("name", ["Simplified Chinese", "Chinese (Simplified)", "Mandarin  Chinese", "zh (Chinese)"])
def test_names_of_several_words_are_known(name: str) -> None:
    assert BAIDU.target(name) == "zh"
    assert BAIDU.target("Chinese (Traditional)") == BAIDU.target("Traditional Chinese") == "cht"


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


def test_each_of_baidus_28_languages_is_offered_once() -> None:
    assert [offered.split(" (")[0] for offered in BAIDU.accepted.split(", ")] == list(SAME)
    assert len(SAME) == 28


async def test_a_translation_into_the_same_language_is_left_to_baidu() -> None:
    async with played() as (client, player):
        await client.translate("hello", "en", "English")
    assert (player.arrivals[0].form["from"], player.arrivals[0].form["to"]) == ("en", "en")
