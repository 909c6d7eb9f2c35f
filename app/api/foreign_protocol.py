"""A protocol of others that the service speaks beside its own."""

from collections.abc import Callable
from dataclasses import dataclass

from fastapi import APIRouter, Response

from app.api import problems
from app.api.bodies import MAX_BODY_BYTES
from app.errors import ToolchatError

__all__ = ["ForeignProtocol"]


@dataclass(frozen=True, slots=True)
class ForeignProtocol:
    """What the door and the assembly must know of it; everything else is in its folder."""

    prefix: str
    """Where all its paths begin, such as ``/v1/``."""
    add_routes: Callable[[APIRouter], None]
    """Adds them to the application's router."""
    error_response: Callable[[ToolchatError, str], Response] = problems.error_response
    """Answers with an error, given the request's id, in the protocol's own words: also for the door."""
    max_body_bytes: int = MAX_BODY_BYTES
