"""Services that share sessions in the Redis of a module, and questions in sessions."""

from tests.faults.service import Service
from tests.faults.stage import Stage
from tests.faults.wire import Reply

__all__ = ["ROOMY", "answers", "asks", "sharing"]

ROOMY = {"MEMORY_MAX_MESSAGES": "10000", "MEMORY_MAX_TOKENS": "1000000"}
"""Settings with which no turn is forgotten for want of room."""


async def sharing(stage: Stage, replica: int = 0) -> Service:
    """The service of the module, or one of several, that keeps its sessions in the Redis of the module."""
    redis = await stage.shared_redis()
    return await stage.replica(replica, REDIS_URL=redis.url, **ROOMY)


async def asks(service: Service, session: str, text: str = "hi") -> Reply:
    """Ask in a session."""
    return await service.ask(f"/chat?userInput={text}", session=session)


async def answers(service: Service, session: str) -> bool:
    """Whether a question in a session is answered."""
    return (await asks(service, session)).status == 200
