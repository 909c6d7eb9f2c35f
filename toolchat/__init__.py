"""The engine of toolchat as a library: chat models, tools and the loop between them (``docs/library.md``).

Programs and tool folders import from here; the modules below are not part of the interface.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolchat.chat.advisors.base import Advisor as Advisor
    from toolchat.chat.advisors.base import AdvisorChain as AdvisorChain
    from toolchat.chat.advisors.base import BaseAdvisor as BaseAdvisor
    from toolchat.chat.advisors.repair import ToolCallRepairAdvisor as ToolCallRepairAdvisor
    from toolchat.chat.advisors.tool_calling import APPROVAL_REQUIRED as APPROVAL_REQUIRED
    from toolchat.chat.advisors.tool_calling import ToolCallingAdvisor as ToolCallingAdvisor
    from toolchat.chat.advisors.tool_search import ToolSearchAdvisor as ToolSearchAdvisor
    from toolchat.chat.client import ChatClient as ChatClient
    from toolchat.chat.client import PromptSpec as PromptSpec
    from toolchat.chat.memory import ChatMemory as ChatMemory
    from toolchat.chat.memory import MemoryAdvisor as MemoryAdvisor
    from toolchat.chat.memory import MemoryWindow as MemoryWindow
    from toolchat.chat.request import Approval as Approval
    from toolchat.chat.request import ChatEvent as ChatEvent
    from toolchat.chat.request import ChatRequest as ChatRequest
    from toolchat.chat.request import Emit as Emit
    from toolchat.chat.request import Notice as Notice
    from toolchat.errors import NotFound as NotFound
    from toolchat.errors import ToolchatError as ToolchatError
    from toolchat.errors import UpstreamInvalid as UpstreamInvalid
    from toolchat.errors import UpstreamUnavailable as UpstreamUnavailable
    from toolchat.http.client import OutboundHttp as OutboundHttp
    from toolchat.models.base import ChatModel as ChatModel
    from toolchat.models.base import ChatOptions as ChatOptions
    from toolchat.models.base import ChatResponse as ChatResponse
    from toolchat.models.base import EmitModelEvent as EmitModelEvent
    from toolchat.models.base import ModelEvent as ModelEvent
    from toolchat.models.base import Progress as Progress
    from toolchat.models.base import Prompt as Prompt
    from toolchat.models.base import TextDelta as TextDelta
    from toolchat.models.resilience import ResilientChatModel as ResilientChatModel
    from toolchat.models.resilience import RetryPolicy as RetryPolicy
    from toolchat.setting_types import BaseUrl as BaseUrl
    from toolchat.setting_types import Secret as Secret
    from toolchat.setting_types import Url as Url
    from toolchat.state.base import StateStore as StateStore
    from toolchat.state.locks import Locks as Locks
    from toolchat.state.memory import InMemoryStateStore as InMemoryStateStore
    from toolchat.tool_calling.callback import ClientToolCallback as ClientToolCallback
    from toolchat.tool_calling.callback import DelegatingToolCallbackResolver as DelegatingToolCallbackResolver
    from toolchat.tool_calling.callback import StaticToolCallbackProvider as StaticToolCallbackProvider
    from toolchat.tool_calling.callback import StaticToolCallbackResolver as StaticToolCallbackResolver
    from toolchat.tool_calling.callback import ToolCallback as ToolCallback
    from toolchat.tool_calling.callback import ToolCallbackProvider as ToolCallbackProvider
    from toolchat.tool_calling.callback import ToolCallbackResolver as ToolCallbackResolver
    from toolchat.tool_calling.context import CONVERSATION_ID as CONVERSATION_ID
    from toolchat.tool_calling.context import ToolContext as ToolContext
    from toolchat.tool_calling.definition import ToolDefinition as ToolDefinition
    from toolchat.tool_calling.definition import ToolMetadata as ToolMetadata
    from toolchat.tool_calling.definition import tool as tool
    from toolchat.tool_calling.errors import ToolArgumentsError as ToolArgumentsError
    from toolchat.tool_calling.errors import ToolDefinitionError as ToolDefinitionError
    from toolchat.tool_calling.errors import ToolExecutionError as ToolExecutionError
    from toolchat.tool_calling.events import ToolCallFinished as ToolCallFinished
    from toolchat.tool_calling.events import ToolCallProgress as ToolCallProgress
    from toolchat.tool_calling.events import ToolCallStarted as ToolCallStarted
    from toolchat.tool_calling.function_callback import FunctionToolCallback as FunctionToolCallback
    from toolchat.tool_calling.function_callback import MethodToolCallback as MethodToolCallback
    from toolchat.tool_calling.function_callback import MethodToolCallbackProvider as MethodToolCallbackProvider
    from toolchat.tool_calling.limits import ToolCallLimits as ToolCallLimits
    from toolchat.tool_calling.manager import ToolCallingManager as ToolCallingManager
    from toolchat.tool_calling.manager import ToolExecutionExceptionProcessor as ToolExecutionExceptionProcessor
    from toolchat.tool_calling.manager import ToolExecutionResult as ToolExecutionResult
    from toolchat.tool_calling.results import ToolCallResultConverter as ToolCallResultConverter
    from toolchat.tool_calling.results import convert_result as convert_result
    from toolchat.tool_calling.results import quoted_result as quoted_result
    from toolchat.tool_module import Components as Components
    from toolchat.tool_module import ToolModule as ToolModule
    from toolchat.tool_module import ToolSettings as ToolSettings

__version__ = "0.1.0"

_MODULES = {
    "APPROVAL_REQUIRED": "toolchat.chat.advisors.tool_calling",
    "Advisor": "toolchat.chat.advisors.base",
    "AdvisorChain": "toolchat.chat.advisors.base",
    "Approval": "toolchat.chat.request",
    "BaseAdvisor": "toolchat.chat.advisors.base",
    "BaseUrl": "toolchat.setting_types",
    "CONVERSATION_ID": "toolchat.tool_calling.context",
    "ClientToolCallback": "toolchat.tool_calling.callback",
    "ChatClient": "toolchat.chat.client",
    "ChatEvent": "toolchat.chat.request",
    "ChatMemory": "toolchat.chat.memory",
    "ChatModel": "toolchat.models.base",
    "ChatOptions": "toolchat.models.base",
    "ChatRequest": "toolchat.chat.request",
    "ChatResponse": "toolchat.models.base",
    "Components": "toolchat.tool_module",
    "DelegatingToolCallbackResolver": "toolchat.tool_calling.callback",
    "Emit": "toolchat.chat.request",
    "EmitModelEvent": "toolchat.models.base",
    "FunctionToolCallback": "toolchat.tool_calling.function_callback",
    "InMemoryStateStore": "toolchat.state.memory",
    "Locks": "toolchat.state.locks",
    "MemoryAdvisor": "toolchat.chat.memory",
    "MemoryWindow": "toolchat.chat.memory",
    "MethodToolCallback": "toolchat.tool_calling.function_callback",
    "MethodToolCallbackProvider": "toolchat.tool_calling.function_callback",
    "ModelEvent": "toolchat.models.base",
    "NotFound": "toolchat.errors",
    "Notice": "toolchat.chat.request",
    "OutboundHttp": "toolchat.http.client",
    "Progress": "toolchat.models.base",
    "Prompt": "toolchat.models.base",
    "PromptSpec": "toolchat.chat.client",
    "ResilientChatModel": "toolchat.models.resilience",
    "RetryPolicy": "toolchat.models.resilience",
    "Secret": "toolchat.setting_types",
    "StateStore": "toolchat.state.base",
    "StaticToolCallbackProvider": "toolchat.tool_calling.callback",
    "StaticToolCallbackResolver": "toolchat.tool_calling.callback",
    "TextDelta": "toolchat.models.base",
    "ToolArgumentsError": "toolchat.tool_calling.errors",
    "ToolCallFinished": "toolchat.tool_calling.events",
    "ToolCallLimits": "toolchat.tool_calling.limits",
    "ToolCallProgress": "toolchat.tool_calling.events",
    "ToolCallRepairAdvisor": "toolchat.chat.advisors.repair",
    "ToolCallResultConverter": "toolchat.tool_calling.results",
    "ToolCallStarted": "toolchat.tool_calling.events",
    "ToolCallback": "toolchat.tool_calling.callback",
    "ToolCallbackProvider": "toolchat.tool_calling.callback",
    "ToolCallbackResolver": "toolchat.tool_calling.callback",
    "ToolCallingAdvisor": "toolchat.chat.advisors.tool_calling",
    "ToolCallingManager": "toolchat.tool_calling.manager",
    "ToolContext": "toolchat.tool_calling.context",
    "ToolDefinition": "toolchat.tool_calling.definition",
    "ToolDefinitionError": "toolchat.tool_calling.errors",
    "ToolExecutionError": "toolchat.tool_calling.errors",
    "ToolExecutionExceptionProcessor": "toolchat.tool_calling.manager",
    "ToolExecutionResult": "toolchat.tool_calling.manager",
    "ToolMetadata": "toolchat.tool_calling.definition",
    "ToolModule": "toolchat.tool_module",
    "ToolSearchAdvisor": "toolchat.chat.advisors.tool_search",
    "ToolSettings": "toolchat.tool_module",
    "ToolchatError": "toolchat.errors",
    "UpstreamInvalid": "toolchat.errors",
    "UpstreamUnavailable": "toolchat.errors",
    "Url": "toolchat.setting_types",
    "convert_result": "toolchat.tool_calling.results",
    "quoted_result": "toolchat.tool_calling.results",
    "tool": "toolchat.tool_calling.definition",
}

__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    """Import a name when it is first used (PEP 562): ``import toolchat`` itself loads no dependency."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
