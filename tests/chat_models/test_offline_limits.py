"""What the offline model does not know or cannot do is said, and never dropped in silence."""

import pytest

from app.messages import UserMessage
from tests.chat_models.test_offline import (
    ALL,
    CLOCK,
    CLOCK_RESULT,
    FORECAST,
    TRANSLATE,
    WEATHER,
    answered,
    asked,
    response,
)


@pytest.mark.parametrize(
    ("question", "place"),
    [
        ("Time in Paris, Texas", "Paris, Texas"),
        ("time in paris, texas please", "paris, texas"),
        ("What time is it in Paris, TX?", "Paris, TX"),
        ("Time in London, Ontario", "London, Ontario"),
        ("London, Canada: time", "London, Canada"),
        ("Time in Birmingham, Alabama", "Birmingham, Alabama"),
        ("Time in Melbourne, Florida", "Melbourne, Florida"),
        ("Time in Portland, Maine", "Portland, Maine"),
        ("Time in San Jose, Costa Rica", "San Jose, Costa Rica"),
        ("Time in Paris, Japan", "Paris, Japan"),
        ("Time in Paris, Nowhereland", "Paris, Nowhereland"),
        ("德克萨斯州的巴黎现在几点", "德克萨斯州的巴黎"),
        ("安大略省的伦敦现在几点", "安大略省的伦敦"),
        ("美国的巴黎现在几点", "美国的巴黎"),
    ],
)
async def test_a_place_with_a_foreign_qualifier_is_an_unknown_place(question: str, place: str) -> None:
    answer = await response(UserMessage(question), tools=(CLOCK,))
    assert answer.message.tool_calls == ()
    assert place in answer.message.text


@pytest.mark.parametrize(
    ("question", "zones"),
    [
        ("Time in Paris, France", ["Europe/Paris"]),
        ("Time in Tokyo, Japan", ["Asia/Tokyo"]),
        ("Time in New York, USA", ["America/New_York"]),
        ("Time in New York, NY", ["America/New_York"]),
        ("Time in Seattle, Washington", ["America/Los_Angeles"]),
        ("Time in London, England", ["Europe/London"]),
        ("Time in Toronto, Ontario, please", ["America/Toronto"]),
        ("What time is it in Paris, please", ["Europe/Paris"]),
        ("In Paris, what time is it?", ["Europe/Paris"]),
        ("Time in Paris, London and Tokyo", ["Europe/Paris", "Europe/London", "Asia/Tokyo"]),
        ("Time in Tokyo, Singapore", ["Asia/Tokyo", "Asia/Singapore"]),
        ("法国巴黎现在几点", ["Europe/Paris"]),
        ("广东省深圳现在几点", ["Asia/Shanghai"]),
        ("吉林省长春现在几点", ["Asia/Shanghai"]),
        ("加利福尼亚州的旧金山现在几点", ["America/Los_Angeles"]),
    ],
)
async def test_a_qualifier_that_belongs_to_the_place_and_a_list_of_places_change_nothing(
    question: str, zones: list[str]
) -> None:
    assert [arguments["timeZoneId"] for _, arguments in await asked(question, CLOCK)] == zones


@pytest.mark.parametrize(
    ("question", "cities"),
    [
        ("weather in Paris, Texas", ["Paris, Texas"]),
        ("weather in London, Ontario tomorrow", ["London, Ontario"]),
        ("weather in Blorptown and Paris", ["Blorptown", "Paris"]),
        ("布洛普镇和巴黎的天气", ["布洛普镇", "巴黎"]),
        ("东京和明天的天气", ["东京"]),
    ],
)
async def test_a_city_is_passed_as_it_is_named_whether_known_or_not(question: str, cities: list[str]) -> None:
    assert [arguments["city"] for _, arguments in await asked(question, WEATHER)] == cities


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("What time is it in Blorptown and Paris?", 'I do not know the time zone of "Blorptown"'),
        ("What time is it in Paris and Blorptown?", 'I do not know the time zone of "Blorptown"'),
        ("what time is it in paris and blorptown", 'I do not know the time zone of "blorptown"'),
        ("Time in Paris, Texas and Tokyo", 'I do not know the time zone of "Paris, Texas"'),
        ("巴黎和布洛普镇现在几点", "我不知道“布洛普镇”在哪个时区"),
        ("北京、东京、伦敦、巴黎、纽约、开罗、悉尼的时间", "最多查 5 个，没有查：开罗、悉尼"),
        ("Time in Tokyo, London, Paris, Cairo, Rome and Oslo", "left out: Oslo."),
        ("time in Tokyo 3 hours from now", "only tell the current time"),
        ("what time is it in Tokyo when it is 5pm in London", "only tell the current time"),
        ("东京3小时以后几点", "只能告诉你现在的时间"),
    ],
)
async def test_what_a_clock_was_not_asked_for_or_cannot_tell_is_said_after_the_time(question: str, said: str) -> None:
    assert await asked(question, CLOCK)
    answer = await answered(question, CLOCK_RESULT, CLOCK)
    assert "20:53:31" in answer
    assert said in answer


@pytest.mark.parametrize("question", ["现在北京几点", "What time is it in Paris and Tokyo?", "time in Rome, please"])
async def test_a_question_that_is_answered_whole_gets_no_remark(question: str) -> None:
    assert len((await answered(question, CLOCK_RESULT, CLOCK)).splitlines()) == 1


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
async def test_an_unknown_language_or_a_missing_text_is_said_and_nothing_is_called(question: str, said: str) -> None:
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


@pytest.mark.parametrize(
    ("question", "days", "said"),
    [
        ("weather in Paris for -3 days", 1, "The limit is 14 days"),
        ("weather in Paris for 1.5 days", 1, "The limit is 14 days"),
        ("weather in Paris for 0 days", 1, "The limit is 14 days"),
        ("weather in Paris for 100 days", 14, "The limit is 14 days"),
        ("weather in Paris for 12345678 days", 14, "The limit is 14 days"),
        ("北京未来一百天的天气", 14, "最多 14 天"),
        ("北京20天以后的天气", 14, "最多 14 天"),
        ("weather in Paris yesterday", 1, "cannot look back"),
        ("weather in Paris 3 days ago", 1, "cannot look back"),
        ("weather in Paris last week", 1, "cannot look back"),
        ("北京一个月的天气", 14, "最多 14 天"),
        ("weather in Paris for 2-3 days", 3, None),
        ("北京昨天天气", 1, "过去的日子查不到"),
        ("北京下周一天气", 14, None),
        ("weather in Paris next weekend", 14, None),
        ("weather in Paris next week", 14, None),
        ("weather in Paris on Monday", 7, None),
    ],
)
async def test_days_beyond_what_a_forecast_has_are_said_to_be_so(question: str, days: int, said: str | None) -> None:
    ((_, arguments),) = await asked(question, WEATHER)
    answer = await answered(question, FORECAST, WEATHER)
    assert arguments["days"] == days
    assert (said or "2026-11-20") in answer


@pytest.mark.parametrize(
    ("question", "promised"),
    [
        ("hello", False),
        ("给我讲个故事", False),
        ("What time is it in Paris?", True),
        ("北京天气", True),
        ("翻译：早上好", True),
    ],
)
async def test_tools_are_promised_only_for_what_they_could_know(question: str, promised: bool) -> None:
    answer = (await response(UserMessage(question))).message.text
    assert ("/chat-tool-function" in answer) is promised
    assert "DASHSCOPE_API_KEY" in answer


@pytest.mark.parametrize(
    "question",
    ["Do not tell me the time in Paris", "don't look up the weather in Paris", "不要告诉我北京的时间", "请别查北京天气",
     "Cancel the weather in Paris", "取消北京的天气"],
)  # fmt: skip
async def test_what_is_forbidden_or_to_be_undone_is_not_done(question: str) -> None:
    answer = await response(UserMessage(question), tools=(CLOCK, WEATHER))
    assert answer.message.tool_calls == ()
