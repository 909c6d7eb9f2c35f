"""Importing tool packages from any folder, under names that collide with no other module."""

import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module, invalidate_caches
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from zlib import crc32

from toolchat.errors import ConfigurationError
from toolchat.tool_calling.definition_checks import shown_path

__all__ = ["import_package", "parent_package"]


def parent_package(folder: Path) -> str:
    """Make a folder of packages importable; return the name of the package that stands for it.

    The name comes from the folder's path: a tool called ``redis`` or ``json`` hides no other module, and ``sys.path``
    stays as it is.
    """
    folder = folder.absolute()
    name = f"toolchat_tools_{crc32(str(folder).encode()):08x}"
    if name not in sys.modules:
        package = ModuleType(name)
        package.__path__ = [str(folder)]
        sys.modules[name] = package
    invalidate_caches()
    return name


def import_package(parent: str, folder: Path) -> tuple[ModuleType, ModuleType | None]:
    """Import a tool package, and its ``routes.py`` if it has one.

    Args:
        parent: the package that stands for the folder above, as :func:`parent_package` returns it.
        folder: the package's folder.

    Raises:
        ConfigurationError: an import failed; one line with file and line.
    """
    name = f"{parent}.{folder.name}"
    try:
        with _absolute_imports(name, folder):
            package = import_module(name)
            return package, import_module(f"{name}.routes") if (folder / "routes.py").is_file() else None
    except (Exception, SystemExit) as error:
        raise ConfigurationError(_import_fault(error, folder)) from error


@contextmanager
def _absolute_imports(name: str, folder: Path) -> Iterator[None]:
    """Let a package import its own modules by its short name as well (``from air.client import ...``).

    This holds while the package is imported, and never hides a module that has the short name already.
    """
    short = folder.name
    known = find_spec(short)
    if known is not None and known.origin != str(folder / "__init__.py"):
        yield
        return
    finder = _AliasFinder(short, name)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for alias in finder.aliases:
            # The names were for the import only: left behind, they would hide a module of that name from others.
            sys.modules.pop(alias, None)


class _AliasFinder(MetaPathFinder, Loader):
    """Finds ``air`` and ``air.client`` as the modules of the package that has another full name.

    A second import under the short name would create every class twice, and the container would not recognise them.
    """

    def __init__(self, short: str, name: str) -> None:
        self._short, self._name = short, name
        self.aliases: list[str] = []

    def find_spec(
        self, fullname: str, _path: Sequence[str] | None, _target: ModuleType | None = None, /
    ) -> ModuleSpec | None:
        """Return a spec for the package and its modules only."""
        is_own = fullname == self._short or fullname.startswith(f"{self._short}.")
        return ModuleSpec(fullname, self) if is_own else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the module itself; the import machinery replaces its spec for the moment."""
        module = import_module(self._name + spec.name.removeprefix(self._short))
        spec.loader_state = module.__spec__
        self.aliases.append(spec.name)
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Put the module's own spec back; its code has run."""
        if module.__spec__ is not None:
            module.__spec__ = module.__spec__.loader_state


def _import_fault(error: BaseException, folder: Path) -> str:
    """Describe a failed import in one line, with the last place within the folder."""
    places = [(Path(frame.filename), frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    message = str(error)
    if isinstance(error, SyntaxError) and error.filename:
        places.append((Path(error.filename), error.lineno))
        message = error.msg
    inside = [(file, line) for file, line in places if file.is_relative_to(folder)]
    file, line = inside[-1] if inside else (folder / "__init__.py", None)
    fault = f"{type(error).__name__}: {(message.splitlines() or [''])[0][:200]}".rstrip(": ")
    return f"{shown_path(file)}: cannot be imported: {fault}" + (f" (line {line})" if line else "")
