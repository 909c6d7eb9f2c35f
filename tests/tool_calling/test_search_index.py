"""Finding tools by words: what is found, in which order, and what it costs."""

from typing import Any

import pytest
from hypothesis import given, strategies as st

from toolchat.chat.advisors.tool_search import ToolIndex
from toolchat.tool_calling.definition import ToolDefinition


def defined(name: str, description: str = "Does something", **parameters: str) -> ToolDefinition:
    """A tool whose parameters have the given descriptions."""
    properties = {parameter: {"type": "string", "description": text} for parameter, text in parameters.items()}
    return ToolDefinition(name, description, {"type": "object", "properties": properties})


TOOLS = [
    defined("getWeatherForecast", "Look up the weather forecast of a city (天气预报)", city="City name"),
    defined("getCityTime", "Tell the current time of a city (获取城市的当前时间)", timeZoneId="IANA time zone"),
    defined("translateText", "Translate a text from one language into another (翻译)", to="Target language"),
    defined("send_email", "Send a message to somebody (发送电子邮件)", recipient="Address", subject="The subject line"),
    defined("searchGitHubIssues", "Look for issues of a repository", repository="Owner and name"),
    defined("ListInvoices", "Show what a customer was billed (查询发票)", customer="Number of the customer"),
    defined("bookTable", "Reserve a table in a restaurant (预订餐厅座位)", seats="How many people will come"),
    defined("HTTPStatus", "Say whether a site is up", url="Address of the site"),
    defined("查询快递", "查询快递物流信息", 单号="快递单号"),
    defined("calculateTax", "计算个人所得税", income="税前收入"),
    defined("meteo", "Temperatur und Wetter für einen Ort in der Schweiz", ort="Name des Ortes"),
]
INDEX = ToolIndex(TOOLS)


def found(query: str, most: int = 8) -> list[str]:
    return [tool.name for tool in INDEX.search(query, most)]


@pytest.mark.parametrize(
    ("query", "best"),
    [
        pytest.param("weather", "getWeatherForecast", id="part of a name"),
        pytest.param("what is the weather in Paris", "getWeatherForecast", id="a whole question"),
        pytest.param("time in a city", "getCityTime", id="the name counts more than the description"),
        pytest.param("email", "send_email", id="a name with underscores"),
        pytest.param("status of https", "HTTPStatus", id="a name that begins with an abbreviation"),
        pytest.param("http", "HTTPStatus", id="an abbreviation"),
        pytest.param("github", "searchGitHubIssues", id="a word that is written with a capital inside"),
        pytest.param("GitHub", "searchGitHubIssues", id="and as the name writes it"),
        pytest.param("invoice", "ListInvoices", id="one of what the name has several"),
        pytest.param("repositories", "searchGitHubIssues", id="several of what the description has one"),
        pytest.param("seats", "bookTable", id="the name of a parameter"),
        pytest.param("people", "bookTable", id="the description of a parameter"),
        pytest.param("IANA", "getCityTime", id="an abbreviation of a parameter's description"),
        pytest.param("fur", "meteo", id="a letter with a mark"),
        pytest.param("天气", "getWeatherForecast", id="zh: a word"),
        pytest.param("明天北京的天气怎么样", "getWeatherForecast", id="zh: a whole question"),
        pytest.param("天氣預報", "getWeatherForecast", id="zh: traditional characters"),
        pytest.param("现在时间", "getCityTime", id="zh: one word of two"),
        pytest.param("给小王发邮件", "send_email", id="zh: an object apart from its verb"),
        pytest.param("发票", "ListInvoices", id="zh: one of two tools that look something up"),
        pytest.param("物流", "查询快递", id="zh: in a description"),
        pytest.param("单号", "查询快递", id="zh: a parameter's name"),
        pytest.param("税", "calculateTax", id="zh: a character alone"),
        pytest.param("查 email", "send_email", id="both languages in one query"),
        pytest.param("ＷＥＡＴＨＥＲ", "getWeatherForecast", id="full width"),
    ],
)
def test_the_tool_that_is_meant_is_found_first(query: str, best: str) -> None:
    assert found(query)[:1] == [best]


def test_a_rare_word_weighs_more_than_one_that_many_tools_have() -> None:
    assert found("text of a city")[:1] == ["translateText"]


@pytest.mark.parametrize("query", ["", " \n", "?!", "quantum", "量子", "x" * 100_000, "\ud800"])
def test_a_query_without_matching_terms_finds_nothing(query: str) -> None:
    assert found(query) == []


def test_words_that_every_tool_has_bring_nothing_along() -> None:
    tools = [*(defined(f"tool{n}", "Look at the things of a place") for n in range(40)), TOOLS[0]]
    assert ToolIndex(tools).search("the weather of a place", 8) == [TOOLS[0]]


def test_two_words_that_share_a_character_have_nothing_in_common() -> None:
    assert found("报销") == []


def test_a_search_returns_at_most_the_requested_number_in_a_stable_order() -> None:
    tools = [defined(f"n{n}", "Tell a joke") for n in range(20)]
    assert [tool.name for tool in ToolIndex(tools).search("joke", 3)] == ["n0", "n1", "n2"]


def test_a_nested_parameter_is_found_and_a_schema_of_any_form_is_read() -> None:
    deep: dict[str, Any] = {"description": "depth"}
    for _ in range(5000):
        deep = {"properties": {"inner": deep}}
    odd = {"type": "object", "properties": [], "description": 7, "anyOf": [{"properties": {"zipCode": True}}, None]}
    index = ToolIndex([ToolDefinition("deep", "One", deep), ToolDefinition("odd", "Two", odd), *TOOLS])
    assert [index.search(query, 1)[0].name for query in ("depth", "zip")] == ["deep", "odd"]


def test_no_tools_are_an_index_too() -> None:
    assert ToolIndex([]).search("weather", 8) == []


NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12).filter(str.strip)
SIMILAR = st.text("aAbB_-. 天气", min_size=1, max_size=5).filter(str.strip)


@pytest.mark.slow
@given(st.sets(NAMES | SIMILAR, min_size=1, max_size=15), st.data())
def test_every_tool_is_found_first_by_its_own_name(names: set[str], data: st.DataObject) -> None:
    # Whatever the others are called: their descriptions here do nothing but repeat the name.
    sought = data.draw(st.sampled_from(sorted(names)))
    index = ToolIndex([defined(name, f"{sought} " * 3) for name in sorted(names)])
    assert index.search(sought, 8)[0].name == sought


@given(st.sets(SIMILAR.map(str.strip), min_size=1, max_size=8))
def test_a_tool_is_found_by_its_name_within_a_sentence(names: set[str]) -> None:
    single = {name for name in names if not set(" .") & set(name)}
    index = ToolIndex([*map(defined, sorted(names)), *TOOLS])
    for name in single:
        assert name in [tool.name for tool in index.search(f"I need “{name}”, please.", 8)]


@given(st.lists(st.text(max_size=30), min_size=1, max_size=12), st.text(max_size=60), st.integers(1, 8))
def test_any_text_can_be_searched_for_in_any_texts(texts: list[str], query: str, most: int) -> None:
    tools = [defined(f"t{n}", f"x{text}", p=text) for n, text in enumerate(texts)]
    hits = ToolIndex(tools).search(query, most)
    assert len(hits) == len({tool.name for tool in hits}) <= most
