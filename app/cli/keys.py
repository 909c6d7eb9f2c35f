"""The command ``keys``: a new key, and the entry by which the service knows it."""

import re
import sys

from app.access.keys import NAME_PATTERN, digest_of, new_key
from toolchat.errors import ConfigurationError

__all__ = ["new_entry"]


def new_entry(name: str) -> int:
    """Make a key; print it on standard error, and its entry for the key file on standard output.

    Raises:
        ConfigurationError: the name cannot be one.
    """
    if not re.fullmatch(NAME_PATTERN, name):
        raise ConfigurationError(
            f"{name[:64]}: a name has 1 to 64 of A-Z a-z 0-9 . _ - and begins with a letter or digit"
        )
    key = new_key()
    print(f"key, shown this once: {key}\n", file=sys.stderr)  # noqa: T201
    print(f'[[keys]]\nname = "{name}"\nsha256 = "{digest_of(key)}"')  # noqa: T201
    return 0
