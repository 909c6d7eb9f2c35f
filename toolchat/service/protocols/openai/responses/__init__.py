"""OpenAI's Responses API: the service's tools appear as calls of an MCP server that clients show and do not run."""
