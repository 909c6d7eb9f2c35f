"""The example application, for servers that import an object, such as ``uvicorn app.main:app``."""

from toolchat.service import create_app

app = create_app(tools=["app.tools"])
