"""OpenAI's chat completions and Responses: the service as a model that runs its tools itself."""

from toolchat.service.api.guard import ProtocolAdapter
from toolchat.service.protocols.openai.errors import error_response
from toolchat.service.protocols.openai.routes import add_routes

MAX_BODY_BYTES = 8 * 1024 * 1024
"""Clients send the whole conversation with every request, its images and their tools included."""

OPENAI = ProtocolAdapter("/v1/", add_routes, error_response, MAX_BODY_BYTES)
