"""The service: the engine behind FastAPI."""
