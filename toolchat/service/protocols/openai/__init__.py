"""OpenAI's chat completions and Responses: the service as a model that runs its tools itself."""
