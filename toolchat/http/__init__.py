"""The outbound HTTP client: HTTP/1.1 requests, responses, a connection pool and circuit breakers.

``client`` is its interface. The pool is written for many small requests to few hosts at once.
"""
