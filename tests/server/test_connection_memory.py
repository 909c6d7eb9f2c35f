"""What a connection takes of memory."""

from functools import partial

from fastapi import FastAPI
from uvicorn.server import ServerState

from toolchat.service.server.runner import server_config
from toolchat.service.settings.service_settings import Settings

SHARED_NAMES = 30
"""With more attributes than these, each instance of a class has a dictionary of its own."""


async def test_connections_share_the_names_of_their_attributes() -> None:
    config = server_config(FastAPI(), Settings())
    config.load()
    assert isinstance(config.http, partial)  # of ProblemProtocol, with its limits
    connection = config.http(config=config, server_state=ServerState(), app_state={})
    connection.on_message_begin()
    assert len(vars(connection)) <= SHARED_NAMES
