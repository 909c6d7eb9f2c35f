"""Logs, metrics and traces of the service.

``metrics`` lists the metrics of ``prometheus_client``; ``observer`` counts what the engine reports (model calls, tool
calls, upstream requests, the store, locks), ``request`` what the guard reports, and ``runtime`` watches the loop and
the memory.
``multiprocess`` shares the metrics of several workers.

If traces are on, ``spans`` extends the observer: it starts and ends the spans, whose attributes are named by
``semantic_conventions``, and ``span_export`` sets up OpenTelemetry's SDK.
"""
