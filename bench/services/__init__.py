"""What is compared: one module per service, each started as ``python -m bench.services.<name> PORT UPSTREAM``."""
