"""The version of the service, for the package, the API and the command line."""

__all__ = ["VERSION"]

VERSION = "0.1.0"
