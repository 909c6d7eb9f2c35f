"""Deprecated: import ``ToolModule`` and ``ToolSettings`` from ``toolchat``; removed in 0.3."""

from toolchat.chat.tool_module import ToolModule, ToolSettings
