"""OpenAI's chat completions: the service as a model that has tools already, for every client that speaks that wire."""

from app.api.foreign_protocol import ForeignProtocol
from app.api.openai_wire.errors import error_response
from app.api.openai_wire.routes import add_routes

__all__ = ["OPENAI"]

MAX_BODY_BYTES = 2 * 1024 * 1024
"""Clients send the whole conversation with every question, and definitions of their tools."""

OPENAI = ForeignProtocol("/v1/", add_routes, error_response, MAX_BODY_BYTES)
