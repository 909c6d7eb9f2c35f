"""Where tools come from: the folders and packages of ``TOOLS_PATH`` and of an application, and the modules in them."""

import os
import pkgutil
import sys
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from itertools import takewhile
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field
from pydantic_settings import NoDecode, SettingsConfigDict

from toolchat.errors import ConfigurationError
from toolchat.service.settings.base import EnvironmentSettings
from toolchat.service.tool_modules.definition_checks import shown_path


def _split_at_colons(value: Any) -> Any:
    return tuple(filter(None, map(str.strip, value.split(os.pathsep)))) if isinstance(value, str) else value


class ToolsPathSettings(EnvironmentSettings):
    """The user's own tools."""

    model_config = SettingsConfigDict(env_prefix="TOOLS_")

    path: Annotated[tuple[str, ...] | None, NoDecode, BeforeValidator(_split_at_colons)] = Field(
        None,
        description="Folders, or names of installed packages, whose packages and files are loaded as tools, separated "
        "by :; by default the folder tools, if there is one",
    )

    @property
    def sources(self) -> tuple[str, ...]:
        """The folders and packages."""
        return self.path or (("tools",) if Path("tools").is_dir() else ())


_NO_MODULES = ("_", "test_", "tests", "conftest")
"""How the names of shared code and of tests begin."""


def files_of(source: str) -> tuple[str, list[Path]]:
    """The package of a source, empty for a folder, and the folders and files in it that may be modules.

    Raises:
        ConfigurationError: there is no such folder or package.
    """
    package, roots = _package_of(source), folders_of(source)
    if not package and str(roots[0]) not in sys.path:
        sys.path.append(str(roots[0]))  # at the end: the folder's shared code must not hide an installed package
    entries = [(root, each) for root in roots for each in pkgutil.iter_modules([str(root)])]
    names = [(root, each) for root, each in entries if not each.name.startswith(_NO_MODULES)]
    return package, [root / (each.name if each.ispkg else f"{each.name}.py") for root, each in names]


def _package_of(source: str) -> str:
    """The name by which Python imports a source: of a folder only that of a package within an importable one."""
    folder = Path(source).absolute()
    if not folder.is_dir():
        return source
    packages = list(takewhile(lambda each: (each / "__init__.py").is_file(), (folder, *folder.parents)))
    top = find_spec(packages[-1].name) if len(packages) > 1 else None
    is_importable = top is not None and top.origin == str(packages[-1] / "__init__.py")
    return ".".join(each.name for each in reversed(packages)) if is_importable else ""


def hidden_code(root: Path) -> Iterator[str]:
    """One line for each piece of a folder's shared code whose name imports something else."""
    names = [each.name for each in pkgutil.iter_modules([str(root)]) if each.name[0] == "_" != each.name[1:2]]
    for name in names:
        spec = find_spec(name)
        if spec is not None and not str(spec.origin).startswith(str(root)):
            yield f"{shown_path(root / name)}: rename it, since {spec.origin} has this name, too"


def folders_of(source: str) -> list[Path]:
    """The folder of a source, or those of an installed package.

    Raises:
        ConfigurationError: there is no such folder or package.
    """
    folder = Path(source).absolute()
    if folder.is_dir():
        if (folder / "__init__.py").is_file() and mentions_tool_module(folder / "__init__.py"):
            raise ConfigurationError(f"TOOLS_PATH: {shown_path(folder)} is a tool; name the folder that it is in")
        return [folder]
    if folder.is_file():
        raise ConfigurationError(f"TOOLS_PATH: {source} is a file; name the folder that it is in")
    try:
        spec = find_spec(source) if all(map(str.isidentifier, source.split("."))) else None
    except ModuleNotFoundError:  # of a parent
        spec = None
    if spec is None or spec.submodule_search_locations is None:
        hint = f"; separate several with {os.pathsep}" if "," in source else ""
        raise ConfigurationError(f"TOOLS_PATH: there is neither a folder nor an installed package {source}{hint}")
    return [Path(each) for each in spec.submodule_search_locations]


def mentions_tool_module(file: Path) -> bool:
    """Whether a file may be a tool module; a script beside the modules must not be run to find that out."""
    try:
        return b"ToolModule" in file.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"{shown_path(file)}: cannot be read: {error.strerror}") from None


def ignored_files(sources: Sequence[str]) -> list[str]:
    """One line for each file or folder that looks like a tool module, and is none."""
    files = [file for source in sources for file in files_of(source)[1] if file.is_file()]
    folders = [each for source in sources for root in folders_of(source) for each in root.glob("[!.]*/")]
    return [
        *(
            f"{shown_path(file)}: is not loaded, since it has no ToolModule; begin the name of shared code with _"
            for file in files
            if not mentions_tool_module(file)
        ),
        *(
            f"{shown_path(folder)}: is not loaded, since it has no __init__.py"
            for folder in folders
            if not folder.name.startswith(_NO_MODULES)
            and not (folder / "__init__.py").exists()
            and any(map(mentions_tool_module, folder.glob("*.py")))
        ),
    ]
