"""Tools: what a model is told of them, and how their calls are run."""

from typing import TYPE_CHECKING

from app.lazy import exporting

if TYPE_CHECKING:
    from app.tool_calling.callback import ToolCallback as ToolCallback
    from app.tool_calling.caller_callback import CallerToolCallback as CallerToolCallback
    from app.tool_calling.context import CONVERSATION_ID as CONVERSATION_ID
    from app.tool_calling.context import ToolContext as ToolContext
    from app.tool_calling.definition import ToolDefinition as ToolDefinition
    from app.tool_calling.definition import ToolMetadata as ToolMetadata
    from app.tool_calling.errors import ToolArgumentsError as ToolArgumentsError
    from app.tool_calling.errors import ToolDefinitionError as ToolDefinitionError
    from app.tool_calling.errors import ToolExecutionError as ToolExecutionError
    from app.tool_calling.events import ToolCallFinished as ToolCallFinished
    from app.tool_calling.events import ToolCallProgress as ToolCallProgress
    from app.tool_calling.events import ToolCallStarted as ToolCallStarted
    from app.tool_calling.exception_processor import ToolExecutionExceptionProcessor as ToolExecutionExceptionProcessor
    from app.tool_calling.function_callback import FunctionToolCallback as FunctionToolCallback
    from app.tool_calling.function_callback import tool as tool
    from app.tool_calling.limits import ToolCallLimits as ToolCallLimits
    from app.tool_calling.manager import ToolCallingManager as ToolCallingManager
    from app.tool_calling.manager import ToolExecutionResult as ToolExecutionResult
    from app.tool_calling.method_callback import MethodToolCallback as MethodToolCallback
    from app.tool_calling.method_callback import MethodToolCallbackProvider as MethodToolCallbackProvider
    from app.tool_calling.provider import StaticToolCallbackProvider as StaticToolCallbackProvider
    from app.tool_calling.provider import ToolCallbackProvider as ToolCallbackProvider
    from app.tool_calling.resolver import DelegatingToolCallbackResolver as DelegatingToolCallbackResolver
    from app.tool_calling.resolver import StaticToolCallbackResolver as StaticToolCallbackResolver
    from app.tool_calling.resolver import ToolCallbackResolver as ToolCallbackResolver
    from app.tool_calling.result_converter import ToolCallResultConverter as ToolCallResultConverter
    from app.tool_calling.result_converter import convert_result as convert_result
    from app.tool_calling.result_converter import quoted_result as quoted_result

__all__ = [
    "CONVERSATION_ID",
    "CallerToolCallback",
    "DelegatingToolCallbackResolver",
    "FunctionToolCallback",
    "MethodToolCallback",
    "MethodToolCallbackProvider",
    "StaticToolCallbackProvider",
    "StaticToolCallbackResolver",
    "ToolArgumentsError",
    "ToolCallFinished",
    "ToolCallLimits",
    "ToolCallProgress",
    "ToolCallResultConverter",
    "ToolCallStarted",
    "ToolCallback",
    "ToolCallbackProvider",
    "ToolCallbackResolver",
    "ToolCallingManager",
    "ToolContext",
    "ToolDefinition",
    "ToolDefinitionError",
    "ToolExecutionError",
    "ToolExecutionExceptionProcessor",
    "ToolExecutionResult",
    "ToolMetadata",
    "convert_result",
    "quoted_result",
    "tool",
]

__getattr__ = exporting(
    __name__,
    {
        "ToolCallback": "callback",
        "CallerToolCallback": "caller_callback",
        "CONVERSATION_ID": "context",
        "ToolContext": "context",
        "ToolDefinition": "definition",
        "ToolMetadata": "definition",
        "ToolArgumentsError": "errors",
        "ToolDefinitionError": "errors",
        "ToolExecutionError": "errors",
        "ToolCallFinished": "events",
        "ToolCallProgress": "events",
        "ToolCallStarted": "events",
        "ToolExecutionExceptionProcessor": "exception_processor",
        "FunctionToolCallback": "function_callback",
        "tool": "function_callback",
        "ToolCallLimits": "limits",
        "ToolCallingManager": "manager",
        "ToolExecutionResult": "manager",
        "MethodToolCallback": "method_callback",
        "MethodToolCallbackProvider": "method_callback",
        "StaticToolCallbackProvider": "provider",
        "ToolCallbackProvider": "provider",
        "DelegatingToolCallbackResolver": "resolver",
        "StaticToolCallbackResolver": "resolver",
        "ToolCallbackResolver": "resolver",
        "ToolCallResultConverter": "result_converter",
        "convert_result": "result_converter",
        "quoted_result": "result_converter",
    },
)
