"""The documents' examples that only read."""

from typing import Annotated, Any

from fastapi import APIRouter, Request, Response

from app.api.answers import answer, answer_prompt
from app.api.chat_routes import ANSWER_RESPONSES, checked_query
from app.api.state import service_state
from app.chat_models.base import ChatOptions
from app.tool_calling.callback import ToolCallback
from app.tool_calling.definition import ToolDefinition
from app.tool_calling.function_callback import FunctionToolCallback
from app.tool_calling.manager import ToolCallingManager
from app.tool_calling.method_callback import MethodToolCallback
from app.tools.examples.asking import Tenant, asked, component, prompt
from app.tools.examples.control import UserControlledExecution
from app.tools.examples.tools import CurrentWeather, DateTimeTools, DirectOrderQuery, OrderQuery

__all__ = ["router"]

router = APIRouter()

_FORM: dict[str, Any] = {"response_class": Response, "responses": ANSWER_RESPONSES}

_TOMORROW = "明天是星期几?"
_CONTROL = "明天星期几?"
_WEATHER = "杭州天气怎么样?"
_ORDER = "查询订单编号为123的交易订单信息"

_Tomorrow = Annotated[str, asked(_TOMORROW, {"后天": "后天是几号?", "English": "Which weekday is it tomorrow?"})]
_Control = Annotated[str, asked(_CONTROL, {"后天": "后天是几号?", "English": "Which weekday is it tomorrow?"})]
_Weather = Annotated[
    str, asked(_WEATHER, {"华氏": "杭州天气怎么样?用华氏度", "English": "What is the weather in Paris?"})
]
_Order = Annotated[str, asked(_ORDER, {"456": "查询订单456", "English": "Show me trade order 123"})]


@router.get("/tools/simple/test", summary="No tool: the model cannot know the date", **_FORM)
async def simple_test(request: Request, query: _Tomorrow = _TOMORROW) -> Response:
    """Ask for tomorrow's weekday without a tool, for comparison with `/tools/simple/call`."""
    return await answer(request, checked_query(request, query, _TOMORROW))


@router.get("/tools/simple/call", summary="Method tool: getCurrentDateTime", **_FORM)
async def simple_call(request: Request, query: _Tomorrow = _TOMORROW) -> Response:
    """Ask for tomorrow's weekday with a tool that tells today's date, in the zone of `EXAMPLES_ZONE`."""
    tools = await component(request, DateTimeTools)
    return await answer(request, checked_query(request, query, _TOMORROW), [tools])


@router.get("/tools/programmatic", summary="Method tool from a definition: an unmarked method", **_FORM)
async def programmatic(request: Request, query: _Tomorrow = _TOMORROW) -> Response:
    """Make a tool of a method that nothing marks, by a definition of its own."""
    tools = await component(request, DateTimeTools)
    definition = ToolDefinition(
        "getCurrentDateTimeWithoutAnnotation",
        "获取用户时区的当前日期和时间",
        {"type": "object", "properties": {}, "additionalProperties": False},
    )
    callback = MethodToolCallback.of(tools.get_current_date_time_without_annotation, definition=definition)
    return await answer(request, checked_query(request, query, _TOMORROW), [callback])


@router.get("/tool/function/annotation", summary="Function tool found by its name: currentWeather", **_FORM)
async def function_annotation(request: Request, query: _Weather = _WEATHER) -> Response:
    """Find the tool under its name in the container. Its 30 degrees are the documents' fixed value, and it says so."""
    callback = await component(request, ToolCallback, "currentWeather")  # type: ignore[type-abstract]
    return await answer(request, checked_query(request, query, _WEATHER), [callback])


@router.get("/tool/function/programmatic", summary="Function tool made in code: currentWeather", **_FORM)
async def function_programmatic(request: Request, query: _Weather = _WEATHER) -> Response:
    """Make the same tool of a callable object, with name and description given here."""
    service = await component(request, CurrentWeather)
    callback = FunctionToolCallback.of(service, name="currentWeather", description="依据位置获取天气信息").in_sandbox()
    return await answer(request, checked_query(request, query, _WEATHER), [callback])


@router.get("/tool/context/order", summary="Context behind the model's back: the tenant of an order", **_FORM)
async def order(request: Request, tenant: Tenant, query: _Order = _ORDER) -> Response:
    """Look up an order. The model gives its number; the tenant comes from the header `X-Tenant-ID`."""
    asking = prompt(request, checked_query(request, query, _ORDER), OrderQuery())
    return await answer_prompt(request, asking.tool_context({"tenantId": tenant}))


@router.get("/tool/context/order-direct", summary="Return direct: the tool's result is the answer", **_FORM)
async def order_direct(request: Request, tenant: Tenant, query: _Order = _ORDER) -> Response:
    """The same, but the model is not asked again."""
    asking = prompt(request, checked_query(request, query, _ORDER), DirectOrderQuery())
    return await answer_prompt(request, asking.tool_context({"tenantId": tenant}))


@router.get("/tool/control", summary="User-controlled execution: the route runs the calls itself", **_FORM)
async def control(request: Request, query: _Control = _CONTROL) -> Response:
    """Take the calls from the model, run them, and ask again with their results, for `TOOL_MAX_ROUNDS` rounds."""
    settings = service_state(request).settings
    tools = await component(request, DateTimeTools)
    own_hands = UserControlledExecution(await component(request, ToolCallingManager), settings.tool_max_rounds)
    asking = prompt(request, checked_query(request, query, _CONTROL), tools).advisors(own_hands)
    return await answer_prompt(request, asking.options(ChatOptions(internal_tool_execution_enabled=False)))
