"""The command ``keys new``: create an API key and its entry for the key file."""

import re

import click

from toolchat.errors import ConfigurationError
from toolchat.service.access.keys import NAME_PATTERN, digest_of, new_key
from toolchat.service.cli import Program


def create_key(_: Program, *, name: str) -> int:
    """Print a new API key on standard error, and its entry for ``API_KEYS_FILE`` on standard output."""
    if not re.fullmatch(NAME_PATTERN, name):
        raise ConfigurationError(
            f"{name[:64]}: must be 1-64 characters of A-Z a-z 0-9 . _ -, starting with a letter or digit"
        )
    key = new_key()
    click.echo(f"key, shown only once: {key}\n", err=True)
    click.echo(f'[[keys]]\nname = "{name}"\nsha256 = "{digest_of(key)}"')
    return 0
