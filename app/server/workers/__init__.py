"""Several processes that answer on one port, and the one that looks after them.

``docs/decisions/workers.md`` says why it is so: a listening socket for each worker, which the parent keeps open; forks
of a parent that has everything imported and set up; figures that each worker has of all.
"""

from app.server.workers.supervisor import Supervisor
from app.server.workers.worker import Worker

__all__ = ["Supervisor", "Worker"]
