"""A folder that cannot register without its secret."""

from typing import ClassVar

from pydantic import Field, SecretStr

from toolchat import ToolModule, ToolSettings
from toolchat.tool_calling.definition import tool


class LockedSettings(ToolSettings):
    """What the safe needs."""

    required: ClassVar[tuple[str, ...]] = ("combination",)

    combination: SecretStr | None = Field(None, description="Opens the safe")


@tool
async def openSafe() -> str:
    """Open the safe."""
    return "open"


module = ToolModule(functions=(openSafe,), settings=LockedSettings)
