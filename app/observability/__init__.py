"""Logs, metrics and traces of the service.

``metrics`` lists the metrics of ``prometheus_client``; ``observer`` counts what the engine reports (model calls, tool
calls, upstream requests, the store, locks), ``request`` what the guard reports, and ``runtime`` watches the event loop.
``multiprocess`` shares the metrics of several workers.

If traces are on, the same calls start and end the spans: ``spans`` is the mechanism, ``conventions`` has the names.
"""
