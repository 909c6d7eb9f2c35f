"""Anthropic's Messages: the service as a model that runs its tools itself."""
