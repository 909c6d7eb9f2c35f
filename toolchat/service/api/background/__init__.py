"""Questions in the background: accepted at once, answered without a connection, and carried on after a crash.

``records`` stores a question and its events, ``backlog`` tells which one runs next, ``runner`` and ``attempt`` run it,
and ``journal`` records what its turn has done so far. ``routes`` accepts, shows, streams and cancels questions.
"""
