"""A model with many tools is given a search for them: what is found, and what it is offered then."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, strategies as st
from pydantic_core import from_json

from tests.chat.scripted import Turn, WatchedModel, calls, client_of, offered, says, told
from toolchat.chat.advisors.tool_loop import APPROVAL_REQUIRED
from toolchat.chat.advisors.tool_search import MOST_FOUND, SEARCH_TOOL, ToolIndex, ToolSearchAdvisor
from toolchat.chat.client import ChatClient, PromptSpec
from toolchat.chat.request import Approval
from toolchat.messages import AssistantMessage, SystemMessage, ToolResponse, ToolResponseMessage, UserMessage
from toolchat.models.base import ChatOptions, ChatResponse
from toolchat.tool_calling.callback import ClientToolCallback, ToolCallback
from toolchat.tool_calling.definition import ToolDefinition, ToolMetadata
from toolchat.tool_calling.function_callback import FunctionToolCallback

ABOVE = 10
WEATHER, SHIP, STOCK = ("getWeather", '{"place":"Rome"}'), ("shipOrder", '{"place":"Rome"}'), "_____5deb668a"


async def answered(place: str = "here") -> str:
    return f"nothing new in {place}"


def named(name: str, description: str, **metadata: Any) -> ToolCallback:
    definition = ToolDefinition(name, description, {"type": "object", "properties": {"place": {"type": "string"}}})
    return FunctionToolCallback.from_function(answered, definition=definition, metadata=ToolMetadata(**metadata))


TOOLS = (
    named("getWeather", "Look up the weather forecast (天气预报)"),
    named("shipOrder", "Send an order to a customer (发货)", requires_approval=True),
    named("ship.it", "Post it"),
    named("todoUpdate", "Write the list of steps"),
    named("查询库存", "Count what is left"),
    *(named(f"tellJoke{number}", "Tell a joke") for number in range(20)),
)
NAMES = [tool.definition.name for tool in TOOLS]


def search(*queries: str) -> AssistantMessage:
    return calls(*((SEARCH_TOOL, f'{{"query":"{each}"}}') for each in queries))


def searching(*turns: Turn, max_result_chars: int = 32768) -> tuple[PromptSpec, WatchedModel]:
    """A question with many tools, and the model that is asked."""
    client, model = client_of(
        *turns, advisors=[ToolSearchAdvisor(ABOVE)], max_rounds=5, max_result_chars=max_result_chars
    )
    return client.prompt("How is it there?").tools(*TOOLS), model


async def test_a_model_is_offered_the_search_and_then_the_found_tools() -> None:
    asking, model = searching(search("weather"), calls(WEATHER), says("Nothing new."))
    response = await asking.call().response()
    assert offered(model) == [[SEARCH_TOOL], [SEARCH_TOOL, "getWeather"], [SEARCH_TOOL, "getWeather"]]
    assert [(each.call.name, each.outcome, each.round) for each in response.executions] == [
        (SEARCH_TOOL, "ok", 1),
        ("getWeather", "ok", 2),
    ]
    assert response.executions[1].result == "nothing new in Rome"


async def test_rounds_that_offer_the_same_tools_offer_one_set_so_that_it_is_written_as_json_once() -> None:
    asking, model = searching(search("weather"), calls(WEATHER), says("Nothing new."))
    await asking.call().response()
    first, found, again = [prompt.tools for prompt in model.prompts]
    assert (first is found, found is again) == (False, True)


async def test_the_result_of_a_search_is_short_and_has_a_hint() -> None:
    long = named("getWeatherReport", f"Tell every detail. {'x' * 5000}")
    client, model = client_of(search("weather"), says("ok"), advisors=[ToolSearchAdvisor(ABOVE)])
    await client.prompt("?").tools(*TOOLS, long).call().response()
    result = from_json(told(model.prompts[1])[0])
    assert [each["name"] for each in result["tools"]] == ["getWeather", "getWeatherReport"]
    assert result["tools"][0]["description"] == "Look up the weather forecast (天气预报)"
    assert len(result["tools"][1]["description"]) == 200
    assert "call these" in result["note"]


async def test_a_search_finds_so_many_tools_at_most_and_all_stay_in_the_order_in_which_they_were_found() -> None:
    asking, model = searching(search("joke", "发货"), search("天气"), says("ok"))
    await asking.call().response()
    jokes = [f"tellJoke{number}" for number in range(MOST_FOUND)]
    assert offered(model)[1:] == [[SEARCH_TOOL, *jokes, "shipOrder"], [SEARCH_TOOL, *jokes, "shipOrder", "getWeather"]]


async def test_a_tool_that_was_not_found_cannot_be_called() -> None:
    asking, model = searching(calls(WEATHER), says("sorry"))
    response = await asking.call().response()
    assert response.executions[0].error_kind == "unknown-tool"
    assert f"available: {SEARCH_TOOL}" in told(model.prompts[1])[0]


@pytest.mark.parametrize("arguments", ["", "{}", '{"query":7}', "weather", '{"query":""}', '{"query":"quantum"}'])
async def test_a_search_with_odd_arguments_finds_nothing_and_ends_nothing(arguments: str) -> None:
    asking, model = searching(calls((SEARCH_TOOL, arguments)), says("sorry"))
    assert await asking.call().content() == "sorry"
    assert offered(model)[1] == [SEARCH_TOOL]


async def test_tools_found_for_an_earlier_question_stay_before_those_of_the_next_one() -> None:
    # The search is in the conversation, as it is if the tool rounds are stored.
    asking, model = searching(search("weather"), says("ok"), search("发货"), says("ok"))
    before = await asking.call().response()
    again = asking.messages((*before.history, before.message, UserMessage("And tellJoke3?")))
    await again.call().response()
    assert offered(model)[1:] == [
        [SEARCH_TOOL, "getWeather"],
        [SEARCH_TOOL, "getWeather", "tellJoke3"],
        [SEARCH_TOOL, "getWeather", "tellJoke3", "shipOrder"],
    ]


async def test_tools_are_only_added_at_the_end_of_those_that_were_offered_before() -> None:
    # A provider's prompt cache serves nothing behind the first change, and tools come before the messages.
    rounds = (calls(WEATHER), search("joke"), calls(("tellJoke2", "{}")), search("发货", "天气"), says("ok"))
    asking, model = searching(*rounds)
    instructions, question = SystemMessage("Use todoUpdate."), UserMessage("请用查询库存")
    asking = asking.messages((instructions, question)).tools(*OWN[:2])
    await asking.options(ChatOptions(tool_choice="getWeather")).call().response()
    offers = offered(model)
    assert all(after[: len(before)] == before for before, after in pairwise(offers))
    assert offers[0] == [SEARCH_TOOL, "own0", "own1", "todoUpdate", STOCK, "getWeather"]
    assert len(offers[-1]) == len(offers[0]) + MOST_FOUND + 1


@pytest.mark.parametrize(
    ("instructions", "question", "names"),
    [
        ("Plan: call todoUpdate.", "请用getWeather查天气，tellJoke3.", ["todoUpdate", "getWeather", "tellJoke3"]),
        ("", "请用查询库存看看还剩多少", [STOCK]),
        ("需要时请调用查询库存。", "ship.it", [STOCK, "ship_it_c9e97ecd"]),
    ],
)
async def test_tools_named_in_the_instructions_or_the_question_are_offered_at_once(
    instructions: str, question: str, names: list[str]
) -> None:
    asking, model = searching(says("ok"))
    await asking.messages((SystemMessage(instructions), UserMessage(question))).call().response()
    assert offered(model) == [[SEARCH_TOOL, *names]]


async def test_a_chosen_tool_is_offered_at_once_and_stays() -> None:
    asking, model = searching(calls(WEATHER), says("ok"))
    await asking.options(ChatOptions(tool_choice="getWeather")).call().response()
    assert offered(model) == [[SEARCH_TOOL, "getWeather"]] * 2
    assert [each.options.tool_choice for each in model.prompts] == ["getWeather", None]


OWN = tuple(
    ClientToolCallback(ToolDefinition(f"own{number}", "Roll a die", {"type": "object"})) for number in range(36)
)
"""Tools that the client runs."""


async def test_the_clients_tools_are_always_offered_and_are_not_searched() -> None:
    asking, model = searching(search("die weather"), calls(("own7", "{}")))
    response = await asking.tools(*OWN).call().response()
    own = [tool.definition.name for tool in OWN]
    assert offered(model) == [[SEARCH_TOOL, *own], [SEARCH_TOOL, *own, "getWeather"]]
    assert [call.name for call in response.message.tool_calls] == ["own7"]


async def test_the_clients_tools_do_not_hide_those_of_the_service() -> None:
    client, model = client_of(says("ok"), advisors=[ToolSearchAdvisor(ABOVE)])
    await client.prompt("?").tools(*OWN, *TOOLS[:ABOVE]).call().response()
    assert offered(model) == [[each.definition.name for each in (*OWN, *TOOLS[:ABOVE])]]


@pytest.mark.parametrize(("count", "above"), [(ABOVE, ABOVE), (1, ABOVE), (0, ABOVE), (len(TOOLS), 0)])
async def test_a_question_with_few_tools_or_with_the_search_off_has_no_search_tool(count: int, above: int) -> None:
    client, model = client_of(says("ok"), advisors=[ToolSearchAdvisor(above)])
    asking = client.prompt("?").tools(*TOOLS[:count]).call()
    await asking.response()
    assert [type(each).__name__ for each in asking.chain.advisors] == ["ToolCallingAdvisor"]
    assert offered(model) == [[each.definition.name for each in TOOLS[:count]]]


async def test_a_caller_that_runs_the_calls_receives_all_tools() -> None:
    asking, model = searching(calls(WEATHER))
    response = await asking.options(ChatOptions(internal_tool_execution_enabled=False)).call().response()
    assert [call.name for call in response.message.tool_calls] == ["getWeather"]
    assert len(model.prompts[0].tools) == len(TOOLS)


async def test_nothing_is_offered_after_the_tools_are_withdrawn() -> None:
    asking, model = searching(lambda prompt: search("weather") if prompt.tools else says("enough"))
    assert await asking.call().content() == "enough"
    assert offered(model)[-1] == []


async def test_the_search_takes_another_name_when_a_tool_has_its_own() -> None:
    own = ClientToolCallback(ToolDefinition(f"{SEARCH_TOOL}2", "Find nails", {"type": "object"}))
    taken = (named(SEARCH_TOOL, "Find hammers"), own)
    client, model = client_of(
        calls((f"{SEARCH_TOOL}3", '{"query":"hammers"}')),
        calls((SEARCH_TOOL, "{}")),
        says("ok"),
        advisors=[ToolSearchAdvisor(ABOVE)],
    )
    response = await client.prompt("?").tools(*TOOLS, *taken).call().response()
    assert offered(model)[1:] == [[f"{SEARCH_TOOL}3", f"{SEARCH_TOOL}2", SEARCH_TOOL]] * 2
    assert response.executions[1].result == "nothing new in here"


@pytest.mark.parametrize("limit", [256, 400])
async def test_a_truncated_search_result_offers_the_tools_it_still_names(limit: int) -> None:
    asking, model = searching(search("joke"), says("ok"), max_result_chars=limit)
    await asking.call().response()
    (shown,) = told(model.prompts[1])
    assert "left out]" in shown
    assert offered(model)[1] == [SEARCH_TOOL, *(name for name in NAMES if f'"{name}"' in shown)]


async def paused_at(*turns: Turn) -> tuple[PromptSpec, WatchedModel, ChatResponse]:
    asking, model = searching(search("发货"), *turns)
    paused = await asking.call().response()
    assert paused.finish_reason == APPROVAL_REQUIRED
    return asking, model, paused


def going_on(client: ChatClient, paused: ChatResponse) -> PromptSpec:
    yes = {call.id: Approval(True) for call in paused.message.tool_calls}
    return client.resume(paused, yes).tools(*TOOLS)


async def test_a_found_tool_can_require_approval_and_is_still_offered_afterwards() -> None:
    asking, model, paused = await paused_at(calls(SHIP), says("done"))
    response = await going_on(asking.client, paused).call().response()
    assert [(each.call.name, each.result) for each in response.executions] == [("shipOrder", "nothing new in Rome")]
    assert offered(model)[1:] == [[SEARCH_TOOL, "shipOrder"]] * 2


async def test_a_search_beside_a_call_that_waits_for_approval_runs_before_it() -> None:
    asking, model, paused = await paused_at(calls(SHIP, (SEARCH_TOOL, '{"query":"weather"}')), says("done"))
    response = await going_on(asking.client, paused).call().response()
    assert [each.call.name for each in response.whole_turn().executions] == [SEARCH_TOOL, SEARCH_TOOL, "shipOrder"]
    assert offered(model)[-1] == [SEARCH_TOOL, "shipOrder", "getWeather"]


async def ask(client: ChatClient, tools: Sequence[ToolCallback]) -> None:
    await client.prompt("?").tools(*tools).call().response()


async def test_the_index_of_a_set_of_tools_is_built_once_and_cached() -> None:
    client, model = client_of(says("ok"), advisors=[ToolSearchAdvisor(ABOVE)])
    others = [(*TOOLS, named(f"other{number}", "Do something else")) for number in range(16)]
    for tools in (TOOLS, *others[:8], TOOLS, *others[8:], TOOLS, others[0]):
        await ask(client, tools)
    made = [prompt.tools[0] for prompt in model.prompts]
    assert made[0] is made[9] is made[18]
    # Of seventeen sets this one was not asked for the longest, so that its search tool had to be made again.
    assert (made[1] is made[19], made[1] == made[19]) == (False, True)


@pytest.mark.parametrize(
    ("text", "offers"),
    [
        ('{"name":"getWeather"', ["getWeather"]),
        ('[{"name":"nonsense"},{"name":""},{"name":"getWeather"},{"name":"tellJ', ["getWeather"]),
        ('{"name":"\\ud800"}{"name":"get\\u0057eather"}', []),
        ('{"description":"{\\"name\\":\\"getWeather\\"}"}', []),
        ('{"error":{"kind":"rejected","message":"no"}}', []),
        ("", []),
    ],
)
async def test_only_existing_tools_of_a_search_result_are_offered(text: str, offers: list[str]) -> None:
    # A caller may send a whole conversation, results and all.
    asking, model = searching(says("ok"))
    result = ToolResponseMessage(
        (ToolResponse("call_0", SEARCH_TOOL, text), ToolResponse("c", "x", '{"name":"shipOrder"}'))
    )
    await asking.messages((UserMessage("?"), search("weather"), result)).call().response()
    assert offered(model) == [[SEARCH_TOOL, *offers]]


def defined(name: str, description: str = "Does something", **parameters: str) -> ToolDefinition:
    """A tool whose parameters have the given descriptions."""
    properties = {parameter: {"type": "string", "description": text} for parameter, text in parameters.items()}
    return ToolDefinition(name, description, {"type": "object", "properties": properties})


MANY = [
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
INDEX = ToolIndex(MANY)


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


@pytest.mark.parametrize("query", ["", " \n", "?!", "quantum", "量子", "报销", "x" * 100_000, "\ud800"])
def test_a_query_without_matching_terms_finds_nothing(query: str) -> None:
    assert found(query) == []


def test_words_that_every_tool_has_bring_nothing_along() -> None:
    tools = [*(defined(f"tool{n}", "Look at the things of a place") for n in range(40)), MANY[0]]
    assert ToolIndex(tools).search("the weather of a place", 8) == [MANY[0]]


def test_a_nested_parameter_is_found_and_a_schema_of_any_form_is_read() -> None:
    deep: dict[str, Any] = {"description": "depth"}
    for _ in range(5000):
        deep = {"properties": {"inner": deep}}
    odd = {"type": "object", "properties": [], "description": 7, "anyOf": [{"properties": {"zipCode": True}}, None]}
    index = ToolIndex([ToolDefinition("deep", "One", deep), ToolDefinition("odd", "Two", odd), *MANY])
    assert [index.search(query, 1)[0].name for query in ("depth", "zip")] == ["deep", "odd"]


ANY_NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12).filter(str.strip)
SIMILAR = st.text("aAbB_-. 天气", min_size=1, max_size=5).filter(str.strip)


@pytest.mark.slow
@given(st.sets(ANY_NAMES | SIMILAR, min_size=1, max_size=15), st.data())
def test_every_tool_is_found_first_by_its_own_name(names: set[str], data: st.DataObject) -> None:
    # The descriptions of the other tools only repeat their names.
    sought = data.draw(st.sampled_from(sorted(names)))
    index = ToolIndex([defined(name, f"{sought} " * 3) for name in sorted(names)])
    assert index.search(sought, 8)[0].name == sought


@given(st.lists(st.text(max_size=30), max_size=12), st.text(max_size=60), st.integers(1, 8))
def test_any_text_can_be_searched_for_in_any_texts(texts: list[str], query: str, most: int) -> None:
    tools = [defined(f"t{n}", f"x{text}", p=text) for n, text in enumerate(texts)]
    hits = ToolIndex(tools).search(query, most)
    assert len(hits) == len({tool.name for tool in hits}) <= most
