"""HTTP/1.1 to upstreams: requests, answers, and the connections that carry them.

Written for what this service does to upstreams: small questions, over few hosts, many at once. ``app.http`` is its door.
"""
