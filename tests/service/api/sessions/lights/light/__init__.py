"""A tool folder: a switch that needs the user's consent, and routes that ask for it with more than a question."""

from typing import Annotated, Any

from dishka.integrations.fastapi import DishkaRoute, FromDishka
from fastapi import APIRouter, Request, Response

from toolchat import ToolModule
from toolchat.chat.advisors.base import BaseAdvisor
from toolchat.chat.client import PromptSpec
from toolchat.chat.request import ChatRequest
from toolchat.models.base import ChatOptions, ChatResponse
from toolchat.service.api.responses.answers import answer_prompt
from toolchat.service.api.service import Service
from toolchat.tool_calling.context import ToolContext
from toolchat.tool_calling.definition import tool
from toolchat.tool_calling.function_callback import FunctionToolCallback

__all__ = ["module"]


@tool(requires_approval=True)
async def switchLight(on: Annotated[bool, "Whether the light is to be on"], context: ToolContext) -> str:
    """Switch the light."""
    return f"{'on' if on else 'off'} in {context.get('room', 'the hall')}"


class Signed(BaseAdvisor):
    """Signs every answer whose question has a context value that says so."""

    order = 150
    record_name = "light.Signed"  # independent of the module

    def applies(self, request: ChatRequest) -> bool:
        return bool(request.context.get("signed"))

    def after(self, response: ChatResponse) -> ChatResponse:
        return response.with_text(f"{response.message.text} (signed)")


router = APIRouter(route_class=DishkaRoute)


@router.get("/light/attic")
async def attic(request: Request, service: Service, signed: FromDishka[Signed]) -> Response:
    options = ChatOptions(temperature=0.5, max_tokens=7)
    asking = _asking(service).tool_context({"room": "the attic", "signed": True}).options(options)
    return await answer_prompt(request, asking.advisors(signed))


UNKEEPABLE: dict[str, Any] = {
    "object": object(),
    "tuple": (1,),
    "number": float("nan"),
    "key": {1: "x"},
    "text": "\ud800",
}


@router.get("/light/context/{name}")
async def context(request: Request, service: Service, name: str) -> Response:
    return await answer_prompt(request, _asking(service).tool_context({"fitting": [1], "odd": UNKEEPABLE[name]}))


@router.get("/light/advised")
async def advised(request: Request, service: Service) -> Response:
    return await answer_prompt(request, _asking(service).advisors(Signed()))


@router.get("/light/plain")
async def plain(request: Request, service: Service) -> Response:
    """Nothing is asked for, so that nothing has to wait."""
    asking = service.chat.prompt("Light?").tools("switchLight").tool_context(UNKEEPABLE)
    return await answer_prompt(request, asking.advisors(Signed()))


@router.get("/light/renamed")
async def renamed(request: Request, service: Service) -> Response:
    own = FunctionToolCallback.from_function(switchLight, name="switchOwnLight")
    return await answer_prompt(request, service.chat.prompt("Own light, please").tools(own))


def _asking(service: Service) -> PromptSpec:
    return service.chat.prompt("Light, please").tools("switchLight")


module = ToolModule(
    functions=(switchLight,), advisors=(Signed,), router=router, default_query="Switch the light on, please"
)
