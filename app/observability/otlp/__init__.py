"""Traces on their way out: when they are on, which are recorded, and how they are sent.

What spans there are, and where they begin and end, is told in ``app.observability``. OpenTelemetry's packages, which
the extra ``observability`` installs, decide about samples, describe the resource and send; they are imported only while
traces are on.
"""
