"""Defers or avoids imports of libraries that this service rarely needs: 2.6 MiB at start, and 3 MiB more with httpx.

Import it before FastAPI. It only changes when something is loaded:

- FastAPI declares models of OpenAPI; pydantic now builds their validators when the documentation is first requested.
- FastAPI imports ``pydantic.v1`` to recognise its models; without that import there are none to recognise.
- httpx imports its command line, and with it rich and Pygments if they are installed.
"""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from types import ModuleType

from app.server.deferred_models import models_built_late

__all__: list[str] = []

_ABSENT = {"pydantic.v1": "fastapi.", "httpx._main": "httpx"}
"""Optional modules, by the package that imports them within ``try``."""


class _MissingModules(MetaPathFinder):
    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:  # noqa: ARG002
        if name in _ABSENT and _importing_module().startswith(_ABSENT[name]):
            raise ModuleNotFoundError(f"{name} is not imported by this service", name=name)


def _importing_module() -> str:
    """Return the name of the module that runs the current import statement."""
    frame = sys._getframe(2)  # noqa: SLF001 - import hooks are not told the importing module
    while frame.f_back is not None and frame.f_globals["__name__"].startswith("importlib."):
        frame = frame.f_back
    return str(frame.f_globals["__name__"])


sys.meta_path.insert(0, _MissingModules())
with models_built_late():
    import fastapi  # noqa: F401
