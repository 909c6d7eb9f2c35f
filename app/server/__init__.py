"""The server: uvicorn with what it lacks for clients that are slow, too many or hostile."""
