"""The outbound HTTP client over aiohttp, with limits, proxies, named causes and circuit breakers."""
