"""What is compared: one module per service, each started as ``python -m benchmarks.services.<name> PORT UPSTREAM``."""
