"""A tool folder that lacks what it needs."""

from typing import ClassVar

from pydantic import Field

from toolchat import ToolModule, ToolSettings
from toolchat.tool_calling.definition import tool
from toolchat.tool_calling.setting_types import Secret

__all__ = ["module"]


class LockedSettings(ToolSettings):
    """The key."""

    required: ClassVar[tuple[str, ...]] = ("api_key",)
    api_key: Secret | None = Field(None, description="Key")


async def openDoor() -> str:
    """Open the door."""
    return "open"


class Windows:
    """The same as a method."""

    @tool
    async def open_window(self) -> str:
        """Open the window."""
        return "open"


module = ToolModule(settings=LockedSettings, functions=(openDoor,), methods=(Windows,))
