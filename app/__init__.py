"""The service: the engine of ``toolchat`` behind FastAPI, with its tools, settings and command line."""
