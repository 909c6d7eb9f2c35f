"""Models that are declared now and built when they are needed."""

from collections.abc import Generator
from contextlib import contextmanager

from pydantic import BaseModel

__all__ = ["models_built_late"]


@contextmanager
def models_built_late() -> Generator[None, None, None]:
    """Import within it what declares many models: pydantic builds each at its first use, and most have none."""
    BaseModel.model_config["defer_build"] = True
    try:
        yield
    finally:
        BaseModel.model_config.pop("defer_build", None)
