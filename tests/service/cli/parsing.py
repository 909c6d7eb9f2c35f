"""Parses a command line as the program does, without running the command."""

import os
from collections.abc import Sequence
from unittest.mock import MagicMock, patch

import click

from toolchat.service.cli import Program
from toolchat.service.cli.commands import commands


def is_understood(program: Program, typed: Sequence[str]) -> bool:
    """Whether there is such a command with such options."""
    module = "toolchat.service.cli.commands.import_module"
    try:
        with (
            patch(module, MagicMock()) as imported,
            patch.dict(os.environ),  # ``demo`` sets variables
            commands(program).make_context("", list(typed)) as context,
        ):
            context.command.invoke(context)
    except click.ClickException:
        return False
    return imported.called
