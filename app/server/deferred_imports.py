"""What libraries load and this service never uses, left out: 2.6 MiB at every start, and 3 where httpx is used.

It is imported before FastAPI, and changes nothing but when something is loaded:

- FastAPI declares models of OpenAPI; pydantic builds their validators when the documentation is first asked for.
- FastAPI loads ``pydantic.v1`` to see whether a class is a model of it; as long as nobody else has loaded it, none is.
- httpx loads its command line, and with it rich and Pygments, where they happen to be installed.
"""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from types import ModuleType

from app.server.deferred_models import models_built_late

__all__: list[str] = []

_ABSENT = {"pydantic.v1": "fastapi.", "httpx._main": "httpx"}
"""Modules that need not be there for the packages that ask for them, all of which ask within ``try``."""


class _Absence(MetaPathFinder):
    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:  # noqa: ARG002
        if name in _ABSENT and _asking().startswith(_ABSENT[name]):
            raise ModuleNotFoundError(f"{name} is left out", name=name)


def _asking() -> str:
    """The module that imports something."""
    frame = sys._getframe(2)  # noqa: SLF001 - there is no other way to know
    while frame.f_back is not None and frame.f_globals["__name__"].startswith("importlib."):
        frame = frame.f_back
    return str(frame.f_globals["__name__"])


sys.meta_path.insert(0, _Absence())
with models_built_late():
    import fastapi  # noqa: F401
