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
    from toolchat.chat.advisors.tool_loop import APPROVAL_REQUIRED as APPROVAL_REQUIRED
    from toolchat.chat.advisors.tool_loop import ToolCallingAdvisor as ToolCallingAdvisor
    from toolchat.chat.advisors.tool_search import ToolSearchAdvisor as ToolSearchAdvisor
    from toolchat.chat.client import ChatClient as ChatClient
    from toolchat.chat.client import PromptSpec as PromptSpec
    from toolchat.chat.manual_execution import run_tool_call as run_tool_call
    from toolchat.chat.memory import ChatMemory as ChatMemory
    from toolchat.chat.memory import MemoryAdvisor as MemoryAdvisor
    from toolchat.chat.memory import MemoryWindow as MemoryWindow
    from toolchat.chat.request import Approval as Approval
    from toolchat.chat.request import ChatEvent as ChatEvent
    from toolchat.chat.request import ChatRequest as ChatRequest
    from toolchat.chat.request import Emit as Emit
    from toolchat.chat.request import Notice as Notice
    from toolchat.chat.request import Resume as Resume
    from toolchat.chat.tool_module import Components as Components
    from toolchat.chat.tool_module import ToolModule as ToolModule
    from toolchat.chat.tool_module import ToolSettings as ToolSettings
    from toolchat.errors import ConfigurationError as ConfigurationError
    from toolchat.errors import CrossSite as CrossSite
    from toolchat.errors import NotConfigured as NotConfigured
    from toolchat.errors import NotFound as NotFound
    from toolchat.errors import Overloaded as Overloaded
    from toolchat.errors import ProviderAuth as ProviderAuth
    from toolchat.errors import ProviderQuota as ProviderQuota
    from toolchat.errors import SessionBusy as SessionBusy
    from toolchat.errors import StoreUnavailable as StoreUnavailable
    from toolchat.errors import ToolchatError as ToolchatError
    from toolchat.errors import ToolLoop as ToolLoop
    from toolchat.errors import UpstreamError as UpstreamError
    from toolchat.errors import UpstreamInvalid as UpstreamInvalid
    from toolchat.errors import UpstreamTimeout as UpstreamTimeout
    from toolchat.errors import UpstreamUnavailable as UpstreamUnavailable
    from toolchat.errors import ValidationFailed as ValidationFailed
    from toolchat.http.client import OutboundHttp as OutboundHttp
    from toolchat.http.client import Reply as Reply
    from toolchat.instruments import Observer as Observer
    from toolchat.instruments import set_observer as set_observer
    from toolchat.messages import AssistantMessage as AssistantMessage
    from toolchat.messages import Message as Message
    from toolchat.messages import SystemMessage as SystemMessage
    from toolchat.messages import ToolCall as ToolCall
    from toolchat.messages import ToolResponse as ToolResponse
    from toolchat.messages import ToolResponseMessage as ToolResponseMessage
    from toolchat.messages import Usage as Usage
    from toolchat.messages import UserMessage as UserMessage
    from toolchat.models.base import ChatModel as ChatModel
    from toolchat.models.base import ChatOptions as ChatOptions
    from toolchat.models.base import ChatResponse as ChatResponse
    from toolchat.models.base import EmitModelEvent as EmitModelEvent
    from toolchat.models.base import ModelEvent as ModelEvent
    from toolchat.models.base import Progress as Progress
    from toolchat.models.base import Prompt as Prompt
    from toolchat.models.base import TextDelta as TextDelta
    from toolchat.models.dashscope.model import DashScopeChatModel as DashScopeChatModel
    from toolchat.models.fallbacks import FallbackChatModel as FallbackChatModel
    from toolchat.models.openai.model import OpenAICompatibleChatModel as OpenAICompatibleChatModel
    from toolchat.models.resilience import ResilientChatModel as ResilientChatModel
    from toolchat.models.resilience import RetryPolicy as RetryPolicy
    from toolchat.state.base import Lock as Lock
    from toolchat.state.base import LockLost as LockLost
    from toolchat.state.base import StateStore as StateStore
    from toolchat.state.locks import Locks as Locks
    from toolchat.state.redis import RedisStateStore as RedisStateStore
    from toolchat.state.sqlite import SqliteStateStore as SqliteStateStore
    from toolchat.state.versions import RECORD_VERSION as RECORD_VERSION
    from toolchat.state.versions import RecordVersion as RecordVersion
    from toolchat.tool_calling.callback import ClientToolCallback as ClientToolCallback
    from toolchat.tool_calling.callback import DelegatingToolCallbackResolver as DelegatingToolCallbackResolver
    from toolchat.tool_calling.callback import StaticToolCallbackProvider as StaticToolCallbackProvider
    from toolchat.tool_calling.callback import StaticToolCallbackResolver as StaticToolCallbackResolver
    from toolchat.tool_calling.callback import ToolCallback as ToolCallback
    from toolchat.tool_calling.callback import ToolCallbackProvider as ToolCallbackProvider
    from toolchat.tool_calling.callback import ToolCallbackResolver as ToolCallbackResolver
    from toolchat.tool_calling.callback import ToolResult as ToolResult
    from toolchat.tool_calling.caller import Caller as Caller
    from toolchat.tool_calling.caller import current_caller as current_caller
    from toolchat.tool_calling.caller import current_client_key as current_client_key
    from toolchat.tool_calling.context import CONVERSATION_ID as CONVERSATION_ID
    from toolchat.tool_calling.context import ToolContext as ToolContext
    from toolchat.tool_calling.definition import ToolDefinition as ToolDefinition
    from toolchat.tool_calling.definition import ToolMetadata as ToolMetadata
    from toolchat.tool_calling.errors import ToolArgumentsError as ToolArgumentsError
    from toolchat.tool_calling.errors import ToolDefinitionError as ToolDefinitionError
    from toolchat.tool_calling.errors import ToolExecutionError as ToolExecutionError
    from toolchat.tool_calling.events import ToolCallEvent as ToolCallEvent
    from toolchat.tool_calling.events import ToolCallFinished as ToolCallFinished
    from toolchat.tool_calling.events import ToolCallProgress as ToolCallProgress
    from toolchat.tool_calling.events import ToolCallStarted as ToolCallStarted
    from toolchat.tool_calling.exception_processor import (
        ToolExecutionExceptionProcessor as ToolExecutionExceptionProcessor,
    )
    from toolchat.tool_calling.function_callback import FunctionToolCallback as FunctionToolCallback
    from toolchat.tool_calling.function_callback import MethodToolCallback as MethodToolCallback
    from toolchat.tool_calling.function_callback import MethodToolCallbackProvider as MethodToolCallbackProvider
    from toolchat.tool_calling.function_callback import tool as tool
    from toolchat.tool_calling.limits import ToolCallLimits as ToolCallLimits
    from toolchat.tool_calling.manager import ProceedToolCall as ProceedToolCall
    from toolchat.tool_calling.manager import ToolCallingManager as ToolCallingManager
    from toolchat.tool_calling.manager import ToolExecutionResult as ToolExecutionResult
    from toolchat.tool_calling.results import ToolAnswer as ToolAnswer
    from toolchat.tool_calling.results import ToolCallResultConverter as ToolCallResultConverter
    from toolchat.tool_calling.results import convert_result as convert_result
    from toolchat.tool_calling.results import quoted_result as quoted_result
    from toolchat.tool_calling.setting_types import BaseUrl as BaseUrl
    from toolchat.tool_calling.setting_types import Secret as Secret
    from toolchat.tool_calling.setting_types import Url as Url

__version__ = "0.1.0"

_EXPORTS = {
    "chat.advisors.base": "Advisor AdvisorChain BaseAdvisor",
    "chat.advisors.repair": "ToolCallRepairAdvisor",
    "chat.advisors.tool_loop": "APPROVAL_REQUIRED ToolCallingAdvisor",
    "chat.advisors.tool_search": "ToolSearchAdvisor",
    "chat.client": "ChatClient PromptSpec",
    "chat.manual_execution": "run_tool_call",
    "chat.memory": "ChatMemory MemoryAdvisor MemoryWindow",
    "chat.request": "Approval ChatEvent ChatRequest Emit Notice Resume",
    "chat.tool_module": "Components ToolModule ToolSettings",
    "errors": (
        "ConfigurationError CrossSite NotConfigured NotFound Overloaded ProviderAuth ProviderQuota SessionBusy "
        "StoreUnavailable ToolchatError ToolLoop UpstreamError "
        "UpstreamInvalid UpstreamTimeout UpstreamUnavailable ValidationFailed"
    ),
    "http.client": "OutboundHttp Reply",
    "instruments": "Observer set_observer",
    "messages": "AssistantMessage Message SystemMessage ToolCall ToolResponse ToolResponseMessage Usage UserMessage",
    "models.base": "ChatModel ChatOptions ChatResponse EmitModelEvent ModelEvent Progress Prompt TextDelta",
    "models.dashscope.model": "DashScopeChatModel",
    "models.fallbacks": "FallbackChatModel",
    "models.openai.model": "OpenAICompatibleChatModel",
    "models.resilience": "ResilientChatModel RetryPolicy",
    "state.base": "Lock LockLost StateStore",
    "state.locks": "Locks",
    "state.versions": "RECORD_VERSION RecordVersion",
    "state.redis": "RedisStateStore",
    "state.sqlite": "SqliteStateStore",
    "tool_calling.callback": (
        "ClientToolCallback DelegatingToolCallbackResolver StaticToolCallbackProvider "
        "StaticToolCallbackResolver ToolCallback ToolCallbackProvider ToolCallbackResolver ToolResult"
    ),
    "tool_calling.caller": "Caller current_caller current_client_key",
    "tool_calling.context": "CONVERSATION_ID ToolContext",
    "tool_calling.definition": "ToolDefinition ToolMetadata",
    "tool_calling.errors": "ToolArgumentsError ToolDefinitionError ToolExecutionError",
    "tool_calling.events": "ToolCallEvent ToolCallFinished ToolCallProgress ToolCallStarted",
    "tool_calling.function_callback": "FunctionToolCallback MethodToolCallback MethodToolCallbackProvider tool",
    "tool_calling.limits": "ToolCallLimits",
    "tool_calling.exception_processor": "ToolExecutionExceptionProcessor",
    "tool_calling.manager": "ProceedToolCall ToolCallingManager ToolExecutionResult",
    "tool_calling.results": "ToolAnswer ToolCallResultConverter convert_result quoted_result",
    "tool_calling.setting_types": "BaseUrl Secret Url",
}
"""The exported names, by the module that defines them."""
_MODULES = {name: f"toolchat.{module}" for module, names in _EXPORTS.items() for name in names.split()}

__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    """Import a name at its first use (PEP 562), so that ``import toolchat`` loads no dependency."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_MODULES[name]), name)
    return value
