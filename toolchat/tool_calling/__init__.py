"""Tool calling: definitions, schemas, callbacks, limits, events and the manager that runs the calls."""
