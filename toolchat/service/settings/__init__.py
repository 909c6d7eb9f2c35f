"""Configuration: settings classes read from environment variables and ``.env``."""
