"""MCP over standard input and output, for hosts on the same machine."""

import logging
import os
import sys
from dataclasses import replace

from fastapi import Request
from mcp.server.context import CallNext, HandlerResult
from mcp.server.runner import serve_dual_era_loop
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR
from pydantic import ValidationError

from toolchat.service.api.problems import as_toolchat_error, problem
from toolchat.service.api.service import ServiceState
from toolchat.service.observability.logs import request_id as current_request_id
from toolchat.service.protocols.mcp_server.calls import Context, Origin
from toolchat.service.protocols.mcp_server.server import SERVER
from toolchat.service.request_state import RequestState, with_state

_log = logging.getLogger("toolchat.request")


async def serve_stdio(state: ServiceState) -> None:
    """Serve until standard input ends."""
    SERVER.middleware.append(_as_request)
    # What a tool prints does not reach the host: the SDK directs it to standard error.
    async with stdio_server() as (messages, answers):
        await serve_dual_era_loop(SERVER, messages, answers, lifespan_state=state)
        sys.stdout.flush()  # what a tool printed, while it still goes to standard error


async def _as_request(ctx: Context, call_next: CallNext) -> HandlerResult:
    """Give a request an id, a log line and errors with a problem document, as the guard does over HTTP."""
    if ctx.request_id is None:
        return await call_next(ctx)
    request_id = os.urandom(8).hex()
    current_request_id.set(request_id)
    # Calls belong to an HTTP request. This one stands in for it and collects the log summary.
    state = RequestState(request_id)
    request = Request(with_state({"type": "http"}, state))
    try:
        return await call_next(replace(ctx, request=Origin(request, {"tenantId": "zh"})))
    except (MCPError, ValidationError):
        raise
    except Exception as error:
        known = as_toolchat_error(error)
        raise MCPError(INTERNAL_ERROR, known.detail, problem(known, request_id)) from error
    finally:
        _log.info("request finished", extra={"method": ctx.method, **state.summary})
