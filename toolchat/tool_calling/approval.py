"""Decides whether a call waits for the user's approval."""

import logging
from functools import partial
from inspect import isawaitable

from toolchat.tool_calling.callback import ToolCallback
from toolchat.tool_calling.context import ToolContext
from toolchat.tool_calling.definition import is_async
from toolchat.tool_calling.errors import ToolArgumentsError
from toolchat.tool_calling.threads import run_blocking

_log = logging.getLogger(__name__)


async def needs_approval(tool: ToolCallback, arguments: str, context: ToolContext) -> bool:
    """Whether a call waits for approval: always, never, or as the tool's rule decides.

    Args:
        tool: the tool; ``metadata.requires_approval`` is its rule.
        arguments: the call's arguments as the model wrote them.
        context: the context of the call.
    """
    rule = tool.metadata.requires_approval
    if isinstance(rule, bool):
        return rule
    try:
        tool.check(arguments)
    except ToolArgumentsError:
        return False  # the call cannot run; the model learns why at once, and the user is not asked
    try:
        ask = partial(rule, tool.read_arguments(arguments), context)
        # A plain function may block, as a plain tool may: its query must not hold up every other request.
        decided = ask() if is_async(rule) else await run_blocking(ask)
        return bool(await decided if isawaitable(decided) else decided)
    except Exception as error:  # noqa: BLE001 - a rule is a user's code; what it fails to allow must not run
        _log.error("a rule for approval failed", extra={"tool": tool.definition.name}, exc_info=error)
        return True
