"""The AI SDK's UI message stream, for pages with ``useChat``."""
