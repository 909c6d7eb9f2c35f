"""Models behind DashScope's own API."""

DEFAULT_BASE_URL = "https://dashscope.aliyuncs.com/api/v1"
