"""OpenAI's chat completions: the service as a model that has tools already, for every client that speaks that wire."""

from app.api.guard import ProtocolAdapter
from app.protocols.openai.errors import error_response
from app.protocols.openai.routes import add_routes

__all__ = ["OPENAI"]

MAX_BODY_BYTES = 2 * 1024 * 1024
"""Clients send the whole conversation with every question, and definitions of their tools."""

OPENAI = ProtocolAdapter("/v1/", add_routes, error_response, MAX_BODY_BYTES)
