"""What a client of the documents' examples sends and sees, and what a model says to it."""

from collections.abc import Mapping
from typing import Any

from tests.chat.played import asks
from tests.players.openai_player import Answer, message, whole

READING = (
    "/tools/simple/test",
    "/tools/simple/call",
    "/tools/programmatic",
    "/tool/function/annotation",
    "/tool/function/programmatic",
    "/tool/context/order",
    "/tool/context/order-direct",
    "/tool/control",
)
ZONE = "Asia/Shanghai"
SAID = whole(message(content="done"))


def calls(*wanted: tuple[str, Mapping[str, Any]]) -> Answer:
    """A turn of the model that asks for tools."""
    return whole(message("tool_calls", **asks(*wanted)))
