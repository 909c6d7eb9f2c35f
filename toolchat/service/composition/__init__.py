"""The composition root's parts: configuration, dependency injection, and the resources of a running service."""
