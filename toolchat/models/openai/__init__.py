"""Models behind OpenAI's APIs."""

DEFAULT_BASE_URL = "https://api.openai.com/v1"
