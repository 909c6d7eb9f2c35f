"""The AI SDK's UI message stream, for pages with ``useChat``."""

from toolchat.service.api.guard import ProtocolAdapter
from toolchat.service.protocols.ai_sdk.answers import error_response
from toolchat.service.protocols.ai_sdk.routes import add_routes

MAX_BODY_BYTES = 8 * 1024 * 1024
"""A page sends the whole conversation with every request, including tool results."""

AI_SDK = ProtocolAdapter("/ai-sdk/", add_routes, error_response, MAX_BODY_BYTES)
