"""FastAPI without the layer that nothing reaches here."""

from fastapi import FastAPI
from starlette.middleware.errors import ServerErrorMiddleware
from starlette.types import ASGIApp

__all__ = ["Application"]


class Application(FastAPI):
    """FastAPI, but for what answers exceptions outermost and looks at every piece of an answer for that.

    ``RequestMiddleware`` lets none of them out; those of a middleware around it the server answers in the same way.
    """

    def build_middleware_stack(self) -> ASGIApp:
        """See Starlette."""
        outermost = super().build_middleware_stack()
        return outermost.app if isinstance(outermost, ServerErrorMiddleware) else outermost
