"""Finding, checking and registering tool modules."""
