"""Questions in the background: accepted at once, answered without a connection, and carried on after a crash.

``records`` stores a question and its events, ``backlog`` tells which one runs next, ``runner`` and ``attempt`` run it,
and ``checkpoints`` stores its turn. ``routes`` accepts, shows, streams and cancels questions.
"""
