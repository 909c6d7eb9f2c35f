"""Worker processes on one port, and the supervisor that starts and replaces them.

``docs/decisions/workers.md`` explains the design: one listening socket per worker, kept open by the parent; workers
are forks of a parent that has imported and configured everything; any worker can report the metrics of all.
"""

from app.server.workers.supervisor import Supervisor
from app.server.workers.worker import Worker

__all__ = ["Supervisor", "Worker"]
