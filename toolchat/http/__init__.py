"""HTTP/1.1 to upstreams: requests, answers, and the connections that carry them.

Written for what this service asks of them: small questions to few hosts, many at once. ``client`` is its interface.
"""
