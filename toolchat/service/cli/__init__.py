"""The command line, ``toolchat COMMAND``: each command is a function that returns its exit code.

An application runs the same command line with its own tools: ``sys.exit(run(Program("python -m app", tools=[...])))``.
"""

from toolchat.service.cli.main import run as run
from toolchat.service.cli.program import Program as Program
