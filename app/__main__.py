"""The example application's command line: ``python -m app``."""

import sys
from contextlib import AbstractContextManager

from toolchat.service.cli import Program, run


def sandbox() -> AbstractContextManager[str]:
    """Serve invented weather and translations; imported by the commands that need it only."""
    from app.sandbox import running_sandbox

    return running_sandbox()


def main() -> int:
    """Run a command; returns its exit code."""
    return run(Program("python -m app", tools=("app.tools",), sandbox=sandbox))


if __name__ == "__main__":
    sys.exit(main())
