"""The HTTP server: uvicorn with protection against slow, numerous or hostile clients, and worker processes."""
