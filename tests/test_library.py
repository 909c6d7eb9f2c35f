"""The engine as a library: what it exports, and a client that needs nothing of the service."""

import ast
import importlib
import subprocess
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

import toolchat
from tests.chat.scripted import ADD, WatchedModel, add, calls, says
from tests.command_line import environment
from tests.waiting import PATIENCE
from toolchat.chat.advisors.base import Advisor, AdvisorChain
from toolchat.chat.advisors.tool_loop import ToolCallingAdvisor
from toolchat.chat.client import ChatClient
from toolchat.chat.request import ChatRequest, Emit
from toolchat.errors import ToolchatError, UpstreamInvalid
from toolchat.models.base import ChatModel, ChatOptions, ChatResponse, EmitModelEvent, Prompt
from toolchat.service.composition.models import open_client
from toolchat.tool_calling.callback import ToolCallback
from toolchat.tool_calling.context import ToolContext
from toolchat.tool_calling.definition import tool
from toolchat.tool_calling.errors import ToolDefinitionError
from toolchat.tool_calling.function_callback import FunctionToolCallback


def test_every_exported_name_is_the_one_that_type_checkers_see() -> None:
    tree = ast.parse(Path(toolchat.__file__).with_name("exports.py").read_text(encoding="utf-8"))
    imported = [(alias, node.module) for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names]
    assert len(imported) > 80
    for alias, module in imported:
        assert alias.asname == alias.name  # the form that type checkers read as an export
        assert getattr(toolchat, alias.name) is getattr(importlib.import_module(str(module)), alias.name)


def test_a_name_that_is_not_exported_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        toolchat.nothing  # type: ignore[attr-defined]  # noqa: B018


def test_importing_the_package_loads_nothing_heavy() -> None:
    heavy = ("pydantic", "fastapi", "aiohttp", "httpx", "dishka", "asyncio")
    program = f"import sys, toolchat; print(sorted(each for each in sys.modules if each.partition('.')[0] in {heavy}))"
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment({}), capture_output=True, text=True, timeout=PATIENCE
    )
    assert (done.stdout.strip(), done.returncode) == ("[]", 0), done.stderr


class Shop:
    @tool
    async def close(self) -> str:
        """Close the shop."""
        return "closed"

    async def add(self, a: int, b: int) -> int:
        """Add two numbers."""
        return a + b


@tool(name="hours")
class Hours:
    """Tell the hours."""

    def __call__(self) -> str:
        return "9-17"


class Several:
    def tool_callbacks(self) -> tuple[ToolCallback, ...]:
        return (FunctionToolCallback.from_function(add),)


@pytest.mark.parametrize(
    ("offered", "names"),
    [
        ([add], ["add"]),
        ([Shop().add], ["add"]),
        ([Shop()], ["close"]),
        ([Hours()], ["hours"]),
        ([FunctionToolCallback.from_function(add)], ["add"]),
        ([Several()], ["add"]),
        ([[add, [Shop()]], (Hours(),)], ["add", "close", "hours"]),
        ([add, add], ["add"]),
    ],
)
def test_everything_that_is_a_tool_can_be_offered(offered: list[object], names: list[str]) -> None:
    client = ChatClient(WatchedModel([says("ok")]))
    request = client.prompt("?").tools(*offered).request
    assert [each.definition.name for each in request.tools] == names


@pytest.mark.parametrize("offered", [Shop, 5, object()], ids=["class", "number", "object"])
def test_an_invalid_tool_is_rejected_with_a_reason(offered: object) -> None:
    with pytest.raises(
        ToolDefinitionError, match=r"(is a class: offer an object of it|has no method that @tool marks)"
    ):
        ChatClient(WatchedModel([says("ok")])).prompt("?").tools(offered)


async def test_the_defaults_of_a_client_apply_to_every_request() -> None:
    model = WatchedModel([says("ok")])
    client = ChatClient.create(
        model, system_text="Be brief.", tools=[add], options=ChatOptions(temperature=0), tool_context={"tenant": "acme"}
    )
    spec = client.prompt("?")
    await spec.call().content()
    assert model.prompts[0].options.temperature == 0
    assert [each.name for each in model.prompts[0].tools] == ["add"]
    assert (spec.request.context.get("tenant"), client.resolver.names()) == ("acme", ("add",))


def test_a_tool_that_a_client_is_made_with_may_be_offered_by_its_name_as_well() -> None:
    client = ChatClient.create(WatchedModel([says("ok")]), tools=[Shop()])
    assert [each.definition.name for each in client.prompt("?").tools("close").request.tools] == ["close"]


async def test_a_client_from_the_environment_calls_its_model() -> None:
    async with open_client() as client:
        assert client.model.provider == "offline"
        assert "Bob" in await client.prompt('Greet "Bob"').tools(greet).call().content()


async def greet(name: str) -> str:
    """Greet a person by name."""
    return f"Hello {name}"


async def test_a_loop_of_the_questions_own_takes_the_place_of_the_clients() -> None:
    model = WatchedModel([calls(ADD), says("3")])
    asking = ChatClient(model).prompt("?").tools(add).advisors(ToolCallingAdvisor(max_rounds=1))
    response = await asking.call().response()
    assert (len(response.executions), len(response.history)) == (1, 3)
    assert model.prompts[1].options.tool_choice == "none"


def test_two_loops_for_one_question_are_refused() -> None:
    asking = ChatClient(WatchedModel([says("ok")])).prompt("?")
    with pytest.raises(ValueError, match="one tool loop"):
        asking.advisors(ToolCallingAdvisor(), ToolCallingAdvisor()).call()


class Speechless(ChatModel):
    provider = name = "speechless"

    async def respond(self, prompt: Prompt, emit: EmitModelEvent) -> ChatResponse:
        return None  # type: ignore[return-value]


class Lost(Advisor):
    order = 350

    async def advise(self, request: ChatRequest, chain: AdvisorChain, emit: Emit) -> ChatResponse:
        await chain.proceed(request, emit)
        return None  # type: ignore[return-value]


async def test_a_model_that_ends_without_a_response_ends_the_question() -> None:
    with pytest.raises(UpstreamInvalid, match="ended without a response"):
        await ChatClient(Speechless()).prompt("?").call().response()


async def test_an_advisor_that_ends_without_a_response_is_named() -> None:
    client = ChatClient(WatchedModel([calls(ADD), says("3")]), advisors=(Lost(),))
    with pytest.raises(ToolchatError, match="the advisor Lost ended without a response"):
        await client.prompt("?").tools(add).call().response()


def test_an_advisor_written_as_a_generator_is_refused_where_it_is_defined() -> None:
    with pytest.raises(TypeError, match=r"Old\.advise is a generator"):

        class Old(Advisor):
            async def advise(  # type: ignore[override]
                self, request: ChatRequest, chain: AdvisorChain, emit: Emit
            ) -> AsyncGenerator[None, None]:
                yield None


class Tenant:
    name = "acme"


async def test_a_typed_value_can_be_passed_with_named_values() -> None:
    async def whose(context: ToolContext[Tenant]) -> str:
        return f"{context.value.name} {context.get('zone')}"

    client = ChatClient(WatchedModel([calls(("whose", "")), says("ok")]))
    asking = client.prompt("?").tools(whose).tool_context({"zone": "Asia/Shanghai"}).tool_context(value=Tenant())
    response = await asking.tool_context({"more": 1}).call().response()
    assert response.executions[0].result == "acme Asia/Shanghai"
