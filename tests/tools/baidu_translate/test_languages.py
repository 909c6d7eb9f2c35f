"""Languages by all their names and codes, put into Baidu's codes."""

import pytest

from app.tools.baidu_translate.languages import accepted, source_code, target_code
from tests.tools.baidu_translate.baidu_player import played
from toolchat.tool_calling.errors import ToolExecutionError

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


def test_each_of_baidus_28_languages_is_offered_once() -> None:
    assert [offered.split(" (")[0] for offered in accepted().split(", ")] == list(SAME)
    assert len(SAME) == 28


async def test_a_translation_into_the_same_language_is_left_to_baidu() -> None:
    async with played() as (client, player):
        await client.translate("hello", "en", "English")
    assert (player.arrivals[0].form["from"], player.arrivals[0].form["to"]) == ("en", "en")
