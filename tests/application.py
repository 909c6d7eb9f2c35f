"""The example application as tests create it."""

from functools import partial

from toolchat.service.composition.configuration import read_configuration as read
from toolchat.service.main import create_app as create

TOOLS = ("app.tools",)

create_app = partial(create, tools=TOOLS)
read_configuration = partial(read, tools=TOOLS)
