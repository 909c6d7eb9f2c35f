"""The public names of the engine, which ``toolchat`` imports at the first use of one of them."""

from toolchat.chat.advisors.base import Advisor as Advisor, AdvisorChain as AdvisorChain, BaseAdvisor as BaseAdvisor
from toolchat.chat.advisors.memory import MemoryAdvisor as MemoryAdvisor
from toolchat.chat.advisors.repair import ToolCallRepairAdvisor as ToolCallRepairAdvisor
from toolchat.chat.advisors.tool_loop import (
    APPROVAL_REQUIRED as APPROVAL_REQUIRED,
    ToolCallingAdvisor as ToolCallingAdvisor,
)
from toolchat.chat.advisors.tool_search import ToolSearchAdvisor as ToolSearchAdvisor
from toolchat.chat.client import ChatClient as ChatClient, PromptSpec as PromptSpec
from toolchat.chat.manual_execution import run_tool_call as run_tool_call
from toolchat.chat.memory import ChatMemory as ChatMemory
from toolchat.chat.memory_window import MemoryWindow as MemoryWindow
from toolchat.chat.request import (
    Approval as Approval,
    ChatEvent as ChatEvent,
    ChatRequest as ChatRequest,
    Emit as Emit,
    Notice as Notice,
    Resume as Resume,
)
from toolchat.chat.tool_module import Components as Components, ToolModule as ToolModule, ToolSettings as ToolSettings
from toolchat.errors import (
    ConfigurationError as ConfigurationError,
    CrossSite as CrossSite,
    NotConfigured as NotConfigured,
    NotFound as NotFound,
    Overloaded as Overloaded,
    ProviderAuth as ProviderAuth,
    ProviderQuota as ProviderQuota,
    SessionBusy as SessionBusy,
    StoreUnavailable as StoreUnavailable,
    ToolchatError as ToolchatError,
    ToolLoop as ToolLoop,
    UpstreamError as UpstreamError,
    UpstreamInvalid as UpstreamInvalid,
    UpstreamTimeout as UpstreamTimeout,
    UpstreamUnavailable as UpstreamUnavailable,
    ValidationFailed as ValidationFailed,
)
from toolchat.http.client import OutboundHttp as OutboundHttp, Reply as Reply
from toolchat.instruments import Observer as Observer, set_observer as set_observer
from toolchat.messages import (
    AssistantMessage as AssistantMessage,
    Message as Message,
    SystemMessage as SystemMessage,
    ToolCall as ToolCall,
    ToolResponse as ToolResponse,
    ToolResponseMessage as ToolResponseMessage,
    Usage as Usage,
    UserMessage as UserMessage,
)
from toolchat.models.base import (
    ChatModel as ChatModel,
    ChatOptions as ChatOptions,
    ChatResponse as ChatResponse,
    EmitModelEvent as EmitModelEvent,
    ModelEvent as ModelEvent,
    Progress as Progress,
    Prompt as Prompt,
    TextDelta as TextDelta,
)
from toolchat.models.dashscope.model import DashScopeChatModel as DashScopeChatModel
from toolchat.models.fallbacks import FallbackChatModel as FallbackChatModel
from toolchat.models.openai.model import OpenAICompatibleChatModel as OpenAICompatibleChatModel
from toolchat.models.resilience import ResilientChatModel as ResilientChatModel, RetryPolicy as RetryPolicy
from toolchat.state.base import (
    RECORD_VERSION as RECORD_VERSION,
    Lock as Lock,
    LockLost as LockLost,
    RecordVersion as RecordVersion,
    StateStore as StateStore,
)
from toolchat.state.locks import Locks as Locks
from toolchat.state.sqlite import SqliteStateStore as SqliteStateStore
from toolchat.tool_calling.callback import (
    ClientToolCallback as ClientToolCallback,
    DelegatingToolCallbackResolver as DelegatingToolCallbackResolver,
    StaticToolCallbackProvider as StaticToolCallbackProvider,
    StaticToolCallbackResolver as StaticToolCallbackResolver,
    ToolCallback as ToolCallback,
    ToolCallbackProvider as ToolCallbackProvider,
    ToolCallbackResolver as ToolCallbackResolver,
    ToolResult as ToolResult,
)
from toolchat.tool_calling.caller import (
    Caller as Caller,
    current_caller as current_caller,
    current_client_key as current_client_key,
)
from toolchat.tool_calling.context import CONVERSATION_ID as CONVERSATION_ID, ToolContext as ToolContext
from toolchat.tool_calling.definition import (
    ToolDefinition as ToolDefinition,
    ToolMetadata as ToolMetadata,
    tool as tool,
)
from toolchat.tool_calling.errors import (
    ToolArgumentsError as ToolArgumentsError,
    ToolDefinitionError as ToolDefinitionError,
    ToolExecutionError as ToolExecutionError,
)
from toolchat.tool_calling.events import (
    ToolCallEvent as ToolCallEvent,
    ToolCallFinished as ToolCallFinished,
    ToolCallProgress as ToolCallProgress,
    ToolCallStarted as ToolCallStarted,
)
from toolchat.tool_calling.exception_processor import ToolExecutionExceptionProcessor as ToolExecutionExceptionProcessor
from toolchat.tool_calling.function_callback import (
    FunctionToolCallback as FunctionToolCallback,
    MethodToolCallback as MethodToolCallback,
    MethodToolCallbackProvider as MethodToolCallbackProvider,
)
from toolchat.tool_calling.limits import ToolCallLimits as ToolCallLimits
from toolchat.tool_calling.manager import (
    ProceedToolCall as ProceedToolCall,
    ToolCallingManager as ToolCallingManager,
    ToolExecutionResult as ToolExecutionResult,
)
from toolchat.tool_calling.recognizers import Recognized as Recognized, Recognizer as Recognizer
from toolchat.tool_calling.results import (
    ToolAnswer as ToolAnswer,
    ToolCallResultConverter as ToolCallResultConverter,
    convert_result as convert_result,
    quoted_result as quoted_result,
)
from toolchat.tool_calling.setting_types import BaseUrl as BaseUrl, Secret as Secret, Url as Url
