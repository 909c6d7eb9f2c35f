"""What is to be translated, from which language and into which ones."""

from typing import Any

import pytest

from tests.offline.asking import ALL, TRANSLATE, answered, asked, parameters, response, text
from toolchat.messages import UserMessage
from toolchat.tool_calling.definition import ToolDefinition


@pytest.mark.parametrize(
    ("question", "q", "source", "target"),
    [
        ("帮我把以下内容翻译成英文：你好，世界。", "你好，世界。", "auto", "en"),
        ("把「早上好」翻译成日语", "早上好", "auto", "ja"),
        ("“谢谢”用法语怎么说？", "谢谢", "auto", "fr"),
        ("你好用英语怎么说", "你好", "auto", "en"),
        ("将“今天天气很好”译为德文", "今天天气很好", "auto", "de"),
        ("请把 good luck 翻译成中文", "good luck", "auto", "zh"),
        ("翻译：hello world", "hello world", "auto", "zh"),
        ("翻译今天天气很好", "今天天气很好", "auto", "en"),
        ("翻译 hello 到 西班牙语", "hello", "auto", "es"),
        ("中译英：早上好", "早上好", "auto", "en"),
        ("翻译成英文\n第一行\n\n第二行", "第一行\n\n第二行", "auto", "en"),
        ("Translate 'good night' into Chinese", "good night", "auto", "zh"),
        ("Translate hello to French", "hello", "auto", "fr"),
        ("how do you say thank you in Japanese?", "thank you", "auto", "ja"),
        ("Please translate “good morning” from English to Korean", "good morning", "auto", "ko"),
        ("Translate into German: a: b", "a: b", "auto", "de"),
        ("翻译成英文：现在几点了？北京的天气呢", "现在几点了？北京的天气呢", "auto", "en"),
    ],
)
async def test_the_text_to_translate_is_passed_unchanged_with_both_languages(
    question: str, q: str, source: str, target: str
) -> None:
    assert await asked(question, *ALL) == [("baiduTranslateFunction", {"q": q, "from": source, "to": target})]


@pytest.mark.parametrize(
    ("name", "schema", "value"),
    [
        pytest.param("language", text("such as English"), "Japanese", id="a name"),
        pytest.param("lang", {"enum": ["EN", "FR", "JA"]}, "JA", id="a choice"),
    ],
)
async def test_a_language_is_written_as_the_schema_requires(name: str, schema: dict[str, Any], value: str) -> None:
    translate = ToolDefinition("translate", "Translate", parameters("text", name, text=text(), **{name: schema}))
    assert await asked("把“好”翻译成日语", translate) == [("translate", {"text": "好", name: value})]


@pytest.mark.parametrize(
    ("question", "q", "targets"),
    [
        ("把你好翻译成韩语和法语", "你好", ["ko", "fr"]),
        ("把“你好”翻译成法语、德语和日语", "你好", ["fr", "de", "ja"]),
        ("translate hello into French, German and Spanish", "hello", ["fr", "de", "es"]),
        ("translate hello to French and Klingon", "hello", ["fr"]),
        ("translate hello into English and tell me the time in Paris", "hello", ["en"]),
        ("Translate welcome to Paris", "welcome to Paris", ["zh"]),
        (
            "translate hello into French, German, Spanish, Thai, Dutch and Greek",
            "hello",
            ["fr", "de", "es", "th", "nl"],
        ),
    ],
)
async def test_each_target_language_gets_its_own_call_with_the_bare_text(
    question: str, q: str, targets: list[str]
) -> None:
    found = [arguments for _, arguments in await asked(question, *ALL) if "q" in arguments]
    assert [(each["q"], each["to"]) for each in found] == [(q, target) for target in targets]


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("translate hello into Klingon", 'do not know the language "Klingon"'),
        ("Translate hello to Klingon.", 'do not know the language "Klingon"'),
        ("把 Guten Morgen 翻译成克林贡语", "不认识“克林贡语”这种语言"),
        ("translate into French", "still need the text"),
    ],
)
async def test_an_unknown_language_or_missing_text_is_reported_without_a_call(question: str, said: str) -> None:
    answer = await response(UserMessage(question), tools=ALL)
    assert answer.message.tool_calls == ()
    assert said in answer.message.text


async def test_languages_that_were_not_translated_into_are_named() -> None:
    result = {"from": "en", "to": "fra", "text": "bonjour"}
    answer = await answered("translate hello into French and Klingon", result, TRANSLATE)
    assert answer == (
        'Translation (French): bonjour\nI do not know the language "Klingon", so I did not translate into it.'
    )


@pytest.mark.parametrize(
    ("code", "chinese", "english"),
    [
        ("fra", "法语", "French"),
        ("kor", "韩语", "Korean"),
        ("spa", "西班牙语", "Spanish"),
        ("jp", "日语", "Japanese"),
        ("cht", "繁体中文", "Traditional Chinese"),
        *(("ara", "阿拉伯语", "Arabic"), ("zh", "中文", "Chinese"), ("swe", "瑞典语", "Swedish")),
        *(("vie", "越南语", "Vietnamese"), ("slo", "斯洛文尼亚语", "Slovenian")),
    ],
)
async def test_a_language_code_is_shown_as_a_name(code: str, chinese: str, english: str) -> None:
    result = {"from": "en", "to": code, "text": "x"}
    assert await answered("翻译：甲", result, TRANSLATE) == f"译文（{chinese}）：x"
    assert await answered("translate: a", result, TRANSLATE) == f"Translation ({english}): x"
