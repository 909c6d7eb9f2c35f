"""What belongs to whom: everything that a principal makes is kept under its name."""

from app.callers import current_caller

__all__ = ["owned", "session_of"]


def owned(name: str) -> str:
    """The name under which something of the current caller is kept.

    Somebody else's is therefore not refused but not there: the same look-up finds nothing, in the same time.
    """
    return current_caller.get().principal.owner + name


def session_of(conversation: str) -> str:
    """The session id of a conversation, without its owner; no session id holds a slash."""
    return conversation.rpartition("/")[2]
