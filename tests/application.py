"""The example application as tests create it."""

from functools import partial

from starlette.applications import Starlette

from app.sandbox import ROUTES
from toolchat.service.composition.configuration import read_configuration as read
from toolchat.service.main import create_app as create

TOOLS = ("app.tools",)

create_app = partial(create, tools=TOOLS)
read_configuration = partial(read, tools=TOOLS)


def create_sandbox() -> Starlette:
    """Create the server of ``make demo`` that plays the tools' upstreams."""
    return Starlette(routes=ROUTES)
