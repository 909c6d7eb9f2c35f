"""What happens around one question: the client, its advisors, the memory."""

from typing import TYPE_CHECKING

from app.lazy import exporting

if TYPE_CHECKING:
    from app.chat.advisors import Advisor as Advisor
    from app.chat.advisors import AdvisorChain as AdvisorChain
    from app.chat.advisors import BaseAdvisor as BaseAdvisor
    from app.chat.client import ChatClient as ChatClient
    from app.chat.client import PromptSpec as PromptSpec
    from app.chat.memory import ChatMemory as ChatMemory
    from app.chat.memory import MemoryWindow as MemoryWindow
    from app.chat.memory_advisor import MemoryAdvisor as MemoryAdvisor
    from app.chat.repair_advisor import ToolCallRepairAdvisor as ToolCallRepairAdvisor
    from app.chat.request import Approval as Approval
    from app.chat.request import ChatEvent as ChatEvent
    from app.chat.request import ChatRequest as ChatRequest
    from app.chat.request import Emit as Emit
    from app.chat.request import Notice as Notice
    from app.chat.tool_calling_advisor import APPROVAL_REQUIRED as APPROVAL_REQUIRED
    from app.chat.tool_calling_advisor import ToolCallingAdvisor as ToolCallingAdvisor

__all__ = [
    "APPROVAL_REQUIRED",
    "Advisor",
    "AdvisorChain",
    "Approval",
    "BaseAdvisor",
    "ChatClient",
    "ChatEvent",
    "ChatMemory",
    "ChatRequest",
    "Emit",
    "MemoryAdvisor",
    "MemoryWindow",
    "Notice",
    "PromptSpec",
    "ToolCallRepairAdvisor",
    "ToolCallingAdvisor",
]

__getattr__ = exporting(
    __name__,
    {
        "Advisor": "advisors",
        "AdvisorChain": "advisors",
        "BaseAdvisor": "advisors",
        "ChatClient": "client",
        "PromptSpec": "client",
        "ChatMemory": "memory",
        "MemoryWindow": "memory",
        "MemoryAdvisor": "memory_advisor",
        "ToolCallRepairAdvisor": "repair_advisor",
        "Approval": "request",
        "ChatEvent": "request",
        "ChatRequest": "request",
        "Emit": "request",
        "Notice": "request",
        "APPROVAL_REQUIRED": "tool_calling_advisor",
        "ToolCallingAdvisor": "tool_calling_advisor",
    },
)
