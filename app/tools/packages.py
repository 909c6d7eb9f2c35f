"""Importing tool packages, those from any folder under names that collide with no other module."""

import sys
import traceback
from importlib import import_module
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from zlib import crc32

from app.tools.definition_checks import shown_path
from toolchat.errors import ConfigurationError

__all__ = ["import_package"]


def import_package(folder: Path, parent: str = "") -> tuple[ModuleType, ModuleType | None]:
    """Import a tool package, and its ``routes.py`` if it has one.

    Args:
        folder: the package's folder.
        parent: the package that it is part of, if any.

    Raises:
        ConfigurationError: an import failed; one line with file and line.
    """
    try:
        package = import_module(f"{parent}.{folder.name}") if parent else _import_folder(folder)
        return package, import_module(f"{package.__name__}.routes") if (folder / "routes.py").is_file() else None
    except (Exception, SystemExit) as error:
        raise ConfigurationError(_import_fault(error, folder)) from error


def _import_folder(folder: Path) -> ModuleType:
    """Import a package from its folder; ``sys.path`` stays as it is.

    It gets the folder's name, by which it can import its own modules as well (``from air.client import ...``). If there
    is another module of that name, such as ``redis``, the package gets a name from its path and hides nothing.
    """
    file = folder.absolute() / "__init__.py"
    known = find_spec(folder.name)
    is_free = known is None or known.origin == str(file)
    name = folder.name if is_free else f"toolchat_tools_{crc32(str(file).encode()):08x}_{folder.name}"
    if name in sys.modules:
        return sys.modules[name]
    spec = spec_from_file_location(name, file, submodule_search_locations=[str(file.parent)])
    if spec is None or spec.loader is None:
        raise ImportError("this is no package")
    module = sys.modules[name] = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]  # as the import statement does, so that the next attempt starts anew
        raise
    return module


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
