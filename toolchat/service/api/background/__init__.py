"""Questions in the background: accepted at once, answered without a connection, and carried on after a crash.

``records`` stores a question and its events, ``journal`` what its turn has done so far, and ``runner`` runs questions
and takes over those of processes that have died. ``routes`` accepts, shows, streams and cancels them.
"""
