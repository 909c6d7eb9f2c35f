"""Chat models: the interface, timeouts, retries, fallbacks, and one folder per provider."""
