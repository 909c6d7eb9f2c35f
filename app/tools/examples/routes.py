"""The documents' examples that only read."""

from typing import Annotated

from dishka import FromComponent
from dishka.integrations.fastapi import DishkaRoute, FromDishka
from fastapi import APIRouter, Request, Response

from app.tools.examples.control import UserControlledExecution
from app.tools.examples.tools import CurrentWeather, DirectOrderQuery, OrderQuery
from app.user_clock import DateTimeTools
from toolchat import (
    ChatOptions,
    FunctionToolCallback,
    MethodToolCallback,
    ToolCallback,
    ToolCallingManager,
    ToolDefinition,
    current_caller,
)
from toolchat.service import QuestionParameter, Service, Tenant, answer, answer_prompt, question_routes

router = APIRouter(tags=["Examples"], route_class=DishkaRoute)

_TOMORROW = QuestionParameter("明天是星期几?", {"后天": "后天是几号?", "English": "Which weekday is it tomorrow?"})
_CONTROL = QuestionParameter("明天星期几?", _TOMORROW.examples)
_WEATHER = QuestionParameter(
    "杭州天气怎么样?", {"华氏": "杭州天气怎么样?用华氏度", "English": "What is the weather in Paris?"}
)
_ORDER = QuestionParameter(
    "查询订单编号为123的交易订单信息", {"456": "查询订单456", "English": "Show me trade order 123"}
)

_DEFAULT_TENANT = "zh"
"""The documents' value."""


def _tenant_id() -> dict[str, str]:
    """The documents' value of the tool context."""
    return {"tenantId": current_caller.get().tenant or _DEFAULT_TENANT}


_CurrentWeather = Annotated[ToolCallback, FromComponent("currentWeather")]


@question_routes(router, "/tools/simple/test", _TOMORROW, summary="No tool: the model cannot know the date")
async def simple_test(request: Request) -> Response:
    """Ask for tomorrow's weekday without a tool, for comparison with `/tools/simple/call`."""
    return await answer(request, await _TOMORROW.read(request))


@question_routes(router, "/tools/simple/call", _TOMORROW, summary="Method tool: getCurrentDateTime")
async def simple_call(request: Request, tools: FromDishka[DateTimeTools]) -> Response:
    """Ask for tomorrow's weekday with a tool that returns today's date, in the time zone Asia/Shanghai."""
    return await answer(request, await _TOMORROW.read(request), [tools])


@question_routes(router, "/tools/programmatic", _TOMORROW, summary="Method tool from a definition: an unmarked method")
async def programmatic(request: Request, tools: FromDishka[DateTimeTools]) -> Response:
    """Ask with a tool that is created in code from an undecorated method and a definition."""
    definition = ToolDefinition(
        "getCurrentDateTimeWithoutAnnotation",
        "获取用户时区的当前日期和时间",
        {"type": "object", "properties": {}, "additionalProperties": False},
    )
    callback = MethodToolCallback.from_function(
        tools.get_current_date_time_without_annotation, definition=definition, read_only=True
    )
    return await answer(request, await _TOMORROW.read(request), [callback])


@question_routes(
    router, "/tool/function/annotation", _WEATHER, summary="Function tool found by its name: currentWeather"
)
async def function_annotation(request: Request, callback: _CurrentWeather) -> Response:
    """Ask with a tool that is found by its name in the container. It returns a fixed 30 degrees, and says so."""
    return await answer(request, await _WEATHER.read(request), [callback])


@question_routes(
    router, "/tool/function/programmatic", _WEATHER, summary="Function tool created in code: currentWeather"
)
async def function_programmatic(request: Request, service: FromDishka[CurrentWeather]) -> Response:
    """Ask with the same tool, created in code from a callable object, a name and a description."""
    callback = FunctionToolCallback.from_function(
        service, name="currentWeather", description="依据位置获取天气信息"
    ).in_sandbox()
    return await answer(request, await _WEATHER.read(request), [callback])


@question_routes(
    router, "/tool/context/order", _ORDER, summary="Tool context, hidden from the model: the tenant of an order"
)
async def order(request: Request, service: Service, _: Tenant = _DEFAULT_TENANT) -> Response:
    """Look up an order. The model gives its number; the tenant comes from the header `X-Tenant-ID`."""
    asking = service.chat.prompt(await _ORDER.read(request)).tools(OrderQuery())
    return await answer_prompt(request, asking.tool_context(_tenant_id()))


@question_routes(router, "/tool/context/order-direct", _ORDER, summary="Return direct: the tool's result is the answer")
async def order_direct(request: Request, service: Service, _: Tenant = _DEFAULT_TENANT) -> Response:
    """Look up an order; the tool's result is the answer, and the model is not asked again."""
    asking = service.chat.prompt(await _ORDER.read(request)).tools(DirectOrderQuery())
    return await answer_prompt(request, asking.tool_context(_tenant_id()))


@question_routes(
    router, "/tool/control", _CONTROL, summary="User-controlled execution: the route runs the calls itself"
)
async def control(
    request: Request,
    service: Service,
    tools: FromDishka[DateTimeTools],
    manager: FromDishka[ToolCallingManager],
) -> Response:
    """Run the model's calls in the route and ask again with their results, for at most `TOOL_MAX_ROUNDS` rounds."""
    own_hands = UserControlledExecution(manager, service.settings.tool_max_rounds)
    asking = service.chat.prompt(await _CONTROL.read(request)).tools(tools).advisors(own_hands)
    return await answer_prompt(request, asking.options(ChatOptions(internal_tool_execution_enabled=False)))
