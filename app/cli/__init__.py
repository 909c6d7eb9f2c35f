"""The command line, ``toolchat COMMAND``: each command is a function that returns its exit code."""
