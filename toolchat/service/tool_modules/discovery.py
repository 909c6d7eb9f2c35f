"""Tool discovery: finds the tool modules of an application and of ``TOOLS_PATH``, and imports and checks them."""

import inspect
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import cast
from zlib import crc32

from fastapi import APIRouter

from toolchat.chat.advisors.base import Advisor
from toolchat.chat.tool_module import ToolModule, ToolSettings
from toolchat.errors import ConfigurationError
from toolchat.service.settings.base import environment_class, environment_name, read_settings
from toolchat.service.tool_modules.definition_checks import (
    definition_faults,
    duplicate_names,
    last_place,
    shown_path,
    source_file,
)
from toolchat.service.tool_modules.sources import files_of, folders_of, hidden_code, mentions_tool_module
from toolchat.tool_calling.function_callback import marked_methods


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
        file = shown_path(source_file(module.folder))
        errors = [f"{file}: {fault}" for fault in _part_faults(module)] + [line for each, _ in found for line in each]
        if errors:
            raise ConfigurationError("\n".join(errors))
        return replace(configured, warnings=tuple(line for _, each in found for line in each))

    @property
    def fault(self) -> str | None:
        """Why the tools are not registered, with the variable to set; ``None`` if they are."""
        if not self.settings.enabled:
            return f"switched off: set {self._variable('enabled')}=true"
        names = " and ".join(map(self._variable, self.settings.missing_fields()))
        return f"not configured: set {names} {self.settings.alternative}".rstrip() if names else None

    def _variable(self, field: str) -> str:
        return environment_name(environment_class(self.module.settings, self.module.env_prefix), field)


def discover(sources: Sequence[str]) -> tuple[ToolModule, ...]:
    """Find the tool modules of folders and installed packages, source by source, sorted by the paths of their routes.

    A module is a package, or a file that mentions ``ToolModule``. Names that begin with ``_`` are shared code: the
    modules of a folder can import them by name.

    Raises:
        ConfigurationError: a source does not exist, a module cannot be imported or has no ``module``, or two modules or
            tools have one name; one line for each, with the file.
    """
    faults: list[str] = []
    found: dict[str, ToolModule] = {}
    for source in sources:
        # A stable order: it is the order of the tools for the model, and of the routes in the documentation.
        in_order = sorted(_modules_of(source, found, faults), key=lambda module: module.path)
        found |= {each.name: each for each in in_order}
    faults += duplicate_names(tool for module in found.values() for tool in module.declared())
    if faults:
        raise ConfigurationError("\n".join(faults))
    return tuple(found.values())


def _modules_of(source: str, found: Mapping[str, ToolModule], faults: list[str]) -> Iterator[ToolModule]:
    """The modules of a source; those of other sources are ``found`` already, and what is wrong goes to ``faults``."""
    try:
        package, files = files_of(source)
    except ConfigurationError as error:
        faults.append(str(error))
        return
    if not package:
        faults += hidden_code(folders_of(source)[0])
    for file in files:
        try:
            taken = found.get(file.stem)
            if taken and taken.folder == file:
                continue  # its package is named twice, once by its folder
            if taken:
                raise ConfigurationError(f"{shown_path(file)}: {shown_path(taken.folder)} has this name already")
            if file.is_dir() and file.with_suffix(".py").exists():
                raise ConfigurationError(
                    f"{shown_path(file)}: {shown_path(file.with_suffix('.py'))} has this name, too"
                )
            if file.is_dir() or mentions_tool_module(file):
                yield _load(package, file)
        except ConfigurationError as error:
            faults.append(str(error))


def _load(parent: str, folder: Path) -> ToolModule:
    if not folder.stem.isidentifier():
        raise ConfigurationError(f"{shown_path(folder)}: the name must be a Python identifier")
    try:
        package = import_module(f"{parent}.{folder.stem}") if parent else _import_folder(folder)
        routes = import_module(f"{package.__name__}.routes") if (folder / "routes.py").is_file() else None
    except (Exception, SystemExit) as error:
        raise ConfigurationError(_import_fault(error, folder)) from error
    module, file = getattr(package, "module", None), shown_path(source_file(folder))
    if not isinstance(module, ToolModule):
        raise ConfigurationError(
            f"{file}: there is no 'module = ToolModule(...)'; begin the name of shared code with _"
        )
    for fault in _declaration_faults(module):
        raise ConfigurationError(f"{file}: {fault}")
    if routes is not None:
        if not isinstance(router := getattr(routes, "router", None), APIRouter):
            raise ConfigurationError(f"{shown_path(folder / 'routes.py')}: there is no 'router = APIRouter(...)'")
        module = replace(module, router=router)
    return module.in_folder(folder.stem, folder)


def _declaration_faults(module: ToolModule) -> Iterator[str]:
    for name in ("functions", "methods", "advisors", "provides", "replaces"):
        if not isinstance(getattr(module, name), tuple | list):
            yield f"{name} must be a tuple: write (one,) for a single one"
    if not (isinstance(module.settings, type) and issubclass(module.settings, ToolSettings)):
        yield f"settings must be a class derived from ToolSettings, not {_describe(module.settings)}"
        return
    if not isinstance(module.settings.required, tuple | list):
        yield "required must be a tuple: write (one,) for a single one"
    if unknown := [each for each in module.settings.required if each not in module.settings.model_fields]:
        yield f"required: class {module.settings.__name__} has no field {unknown[0]}"
    if not isinstance(module.examples, Mapping):
        yield "examples must be a dict of questions by their labels"


def _part_faults(module: ToolModule) -> Iterator[str]:
    """What is wrong with a module's tools and advisors, whose authors need not check types."""
    methods: Sequence[object] = module.methods
    for each in methods:
        if not isinstance(each, type) or not marked_methods(each):
            yield f"{_describe(each)} has no method that @tool marks"
    for each in module.function_tools:
        if not callable(each):
            yield f"functions: {_describe(each)} is no tool"
    for part in (*module.methods, *module.functions):
        for missing in sorted(getattr(part, "__abstractmethods__", ())) if isinstance(part, type) else ():
            yield f"{_describe(part)} has no method {missing}"
    yield from _advisor_faults(module.advisors)


def _advisor_faults(advisors: Sequence[object]) -> Iterator[str]:
    for each in advisors:
        if not (isinstance(each, type) and issubclass(each, Advisor)):
            yield f"advisors: {_describe(each).removeprefix('class ')} is no class derived from Advisor"
        elif inspect.isabstract(each):
            yield f"advisors: {_describe(each)} has no method advise"


def _describe(part: object) -> str:
    return f"class {part.__name__}" if isinstance(part, type) else f"an object of {type(part).__name__}"


def _import_folder(folder: Path) -> ModuleType:
    """Import a package or a file under its own name, by which it can import its modules (``from air import client``).

    If there is another module of that name, such as ``redis``, it gets a name from its path and hides nothing.
    """
    file = source_file(folder)
    known = find_spec(folder.stem)
    is_free = known is None or known.origin == str(file)
    name = folder.stem if is_free else f"toolchat_tools_{crc32(str(file).encode()):08x}_{folder.stem}"
    if name in sys.modules:
        return sys.modules[name]
    places = [str(file.parent)] if folder.is_dir() else None
    spec = spec_from_file_location(name, file, submodule_search_locations=places)
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
    """Describe a failed import in one line, with the last place within the folder of the modules."""
    file, line = last_place(error, folder)
    message = error.msg if isinstance(error, SyntaxError) and error.filename else str(error)
    fault = f"{type(error).__name__}: {(message.splitlines() or [''])[0][:200]}".rstrip(": ")
    return f"{shown_path(file)}: cannot be imported: {fault}" + (f" (line {line})" if line else "")
