"""Tool discovery: finds the built-in tool modules and those of ``TOOLS_PATH``, imports, configures and checks them."""

import inspect
import os
import pkgutil
import sys
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, cast
from zlib import crc32

from pydantic import BeforeValidator, Field
from pydantic_settings import NoDecode, SettingsConfigDict

from toolchat.chat.advisors.base import Advisor
from toolchat.chat.tool_module import ToolModule, ToolSettings
from toolchat.errors import ConfigurationError
from toolchat.service.settings.base import EnvironmentSettings, environment_class, environment_name, read_settings
from toolchat.service.tool_modules.definition_checks import definition_faults, duplicate_names, shown_path
from toolchat.tool_calling.function_callback import marked_methods


def _split_at_colons(value: Any) -> Any:
    return tuple(filter(None, map(str.strip, value.split(os.pathsep)))) if isinstance(value, str) else value


class ToolsPathSettings(EnvironmentSettings):
    """Tools beside the built-in ones."""

    model_config = SettingsConfigDict(env_prefix="TOOLS_")

    path: Annotated[tuple[Path, ...], NoDecode, BeforeValidator(_split_at_colons)] = Field(
        (), description="Folders whose packages are loaded as tools beside the built-in ones, separated by :"
    )


@dataclass(frozen=True, slots=True)
class ConfiguredModule:
    """A tool module with its settings."""

    module: ToolModule
    settings: ToolSettings = field(default_factory=lambda: ToolSettings.model_construct(enabled=True, sandbox_url=None))
    """Without any, the module is enabled and no variable changes that."""
    warnings: tuple[str, ...] = ()
    """What may trouble a model or a provider in the tools' definitions; logged at start."""

    @classmethod
    def read(cls, module: ToolModule) -> "ConfiguredModule":
        """Read a module's settings from the environment; check its tools unless it is switched off.

        Raises:
            ConfigurationError: a setting or a definition is invalid; one line for each.
        """
        settings = cast("ToolSettings", read_settings(environment_class(module.settings, module.env_prefix)))
        configured = cls(module, settings)
        # Its tools are not created, so their faults must not stop the start.
        if configured.fault:
            return configured
        found = [definition_faults(tool) for tool in module.declared() if callable(tool.function)]
        errors = [*_tool_faults(module), *_advisor_faults(module), *(line for each in found for line in each.errors)]
        if errors:
            raise ConfigurationError("\n".join(errors))
        return replace(configured, warnings=tuple(line for each in found for line in each.warnings))

    @property
    def fault(self) -> str | None:
        """Why the tools are not registered, with the variable to set; ``None`` if they are."""
        if not self.settings.enabled:
            return f"switched off: set {self._variable('enabled')}=true"
        names = " and ".join(map(self._variable, self.settings.missing_fields()))
        return f"not configured: set {names} {self.settings.alternative}".rstrip() if names else None

    def _variable(self, field: str) -> str:
        return environment_name(environment_class(self.module.settings, self.module.env_prefix), field)


def discover(package: str = "app.tools", paths: Sequence[Path] = ()) -> tuple[ToolModule, ...]:
    """Find every tool module of a package and of further folders, these last, sorted by the paths of their routes.

    Raises:
        ConfigurationError: a package cannot be imported or has no ``module``, or two modules or tools have one name;
            one line for each, with the file.
    """
    faults = [f"TOOLS_PATH: there is no folder {each}" for each in paths if not each.is_dir()]
    # A folder of packages may be one itself.
    packages = [each for each in paths if (each / "__init__.py").is_file() and not list(each.glob("*/__init__.py"))]
    faults += [f"TOOLS_PATH: {shown_path(each)} is a package; name the folder that it is in" for each in packages]
    found: dict[str, ToolModule] = {}
    own = set()
    for parent, folder in _folders(package, paths):
        try:
            if taken := found.get(folder.name):
                raise ConfigurationError(f"{shown_path(folder)}: {shown_path(taken.folder)} has this name already")
            found[folder.name] = _load(parent, folder)
            own |= {folder.name} if parent != package else set()
        except ConfigurationError as error:
            faults.append(str(error))
    # A stable order: it is the order of the tools for the model, and of the routes in the documentation.
    modules = sorted(found.values(), key=lambda module: (module.name in own, module.path))
    faults += duplicate_names(tool for module in modules for tool in module.declared())
    if faults:
        raise ConfigurationError("\n".join(faults))
    return tuple(modules)


def _folders(package: str, paths: Sequence[Path]) -> Iterator[tuple[str, Path]]:
    """The packages of a package and of folders, each with the package that it is part of."""
    roots = [(package, Path(root)) for root in import_module(package).__path__]
    for parent, root in (*roots, *(("", path) for path in paths)):
        yield from ((parent, root / info.name) for info in pkgutil.iter_modules([str(root)]) if info.ispkg)


def _load(parent: str, folder: Path) -> ToolModule:
    if not folder.name.isidentifier():
        raise ConfigurationError(f"{shown_path(folder)}: the folder's name must be a Python identifier")
    package, routes = import_package(folder, parent)
    module, file = getattr(package, "module", None), shown_path(folder / "__init__.py")
    if not isinstance(module, ToolModule):
        raise ConfigurationError(f"{file}: there is no 'module = ToolModule(...)'")
    for name in ("functions", "methods", "advisors", "provides"):
        if not isinstance(getattr(module, name), tuple | list):
            raise ConfigurationError(f"{file}: {name} must be a tuple: write (one,) for a single one")
    if routes is not None:
        module = replace(module, router=_router(routes, folder))
    return module.in_folder(folder.name, folder)


def _router(routes: object, folder: Path) -> object:
    router = getattr(routes, "router", None)
    if router is None:
        raise ConfigurationError(f"{shown_path(folder / 'routes.py')}: there is no 'router = APIRouter(...)'")
    return router


def _tool_faults(module: ToolModule) -> list[str]:
    file = shown_path(module.folder / "__init__.py")
    methods: Sequence[object] = module.methods
    return [
        *(f"{file}: {_describe(each)} has no method that @tool marks" for each in methods if not _has_tools(each)),
        *(f"{file}: functions: {_describe(each)} is no tool" for each in module.function_tools if not callable(each)),
    ]


def _has_tools(part: object) -> bool:
    return isinstance(part, type) and bool(marked_methods(part))


def _describe(part: object) -> str:
    return f"class {part.__name__}" if isinstance(part, type) else f"an object of {type(part).__name__}"


def _advisor_faults(module: ToolModule) -> list[str]:
    file = shown_path(module.folder / "__init__.py")
    faults: list[str] = []
    advisors: Sequence[object] = module.advisors
    for each in advisors:
        if not (isinstance(each, type) and issubclass(each, Advisor)):
            faults.append(
                f"{file}: advisors: {_describe(each).removeprefix('class ')} is no class derived from Advisor"
            )
        elif inspect.isabstract(each):
            faults.append(f"{file}: advisors: class {each.__name__} has no method advise")
    return faults


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
