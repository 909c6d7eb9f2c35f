"""The application as an object, for servers that want one: ``uvicorn app.asgi:app``, ``fastapi dev``."""

from app.main import create_app

__all__ = ["app"]

app = create_app()
