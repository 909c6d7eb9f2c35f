"""Faults injected into real processes of the service."""
