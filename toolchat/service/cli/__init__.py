"""The command line, ``python -m app COMMAND``: each command is a function that returns its exit code."""
