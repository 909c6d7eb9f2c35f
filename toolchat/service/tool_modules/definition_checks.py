"""Checks of tool definitions at start: errors stop the start, warnings are logged."""

import inspect
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from toolchat.chat.tool_module import DeclaredTool, ToolModule
from toolchat.errors import ConfigurationError
from toolchat.tool_calling.definition import ToolMarker, declared_name, validate_metadata
from toolchat.tool_calling.errors import ToolDefinitionError
from toolchat.tool_calling.schema import input_of_function
from toolchat.tool_calling.signature import docstring_summary


def _file_of(declared: DeclaredTool) -> str:
    """The file of the code; the folder's ``__init__.py`` for code from outside the folder."""
    try:
        file = Path(inspect.getfile(inspect.unwrap(declared.function)))
    except TypeError:
        file = declared.folder
    is_inside = file.is_relative_to(declared.folder) and file.suffix
    return shown_path(file if is_inside else source_file(declared.folder))


def source_file(folder: Path) -> Path:
    """The file in which a tool module is declared: the module itself, or the ``__init__.py`` of its folder."""
    return folder if folder.suffix == ".py" else folder / "__init__.py"


def shown_path(file: Path) -> str:
    """Show a path relative to the working directory, if it is below."""
    here = Path.cwd()
    return str(file.relative_to(here) if file.is_relative_to(here) else file)


def last_place(error: BaseException, folder: Path) -> tuple[Path, int | None]:
    """The file and line beside or in a folder where an exception was raised, or that it passed last."""
    places = [(Path(frame.filename), frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    if isinstance(error, SyntaxError) and error.filename:
        places.append((Path(error.filename), error.lineno))
    inside = [(file, line) for file, line in places if file.is_relative_to(folder.parent)]
    return inside[-1] if inside else (source_file(folder), None)


def raised_by(module: ToolModule, doing: str, error: BaseException) -> ConfigurationError:
    """An exception of a module's code as a fault: its type and place, as its text may hold a secret."""
    if isinstance(error, ConfigurationError):
        return error
    file, line = last_place(error, module.folder)
    place = f" (line {line})" if line else ""
    return ConfigurationError(f"{shown_path(file)}: {doing}: {type(error).__name__}{place}")


def definition_faults(declared: DeclaredTool) -> tuple[list[str], list[str]]:
    """Check the definition of one tool; one line for each problem, with the file, the tool and the parameter.

    Returns:
        The problems that stop the start, and those that some models or providers have with a tool that works.
    """
    name = declared_name(declared.function)
    marker = ToolMarker.find(declared.function) or ToolMarker()
    for part, text in (("name", name), ("description", marker.description)):
        if text is not None and not text.strip():
            return [f"{_file_of(declared)}: tool {name}: the {part} is blank"], []
    try:
        tool_input = input_of_function(_called_function(declared), declared.name)
        validate_metadata(declared.name, marker.metadata, tool_input.context_parameter)
    except ToolDefinitionError as error:
        return [f"{_file_of(declared)}: {' '.join(str(error).split())}"], []
    described = bool(marker.description or docstring_summary(declared.function))
    warnings = [] if described else ["has no description but its name"]
    if name != declared.name:
        warnings.append(f"is offered as {declared.name}: providers take up to 64 of A-Z, a-z, 0-9, '_' and '-'")
    parameters = tool_input.schema["properties"].items()
    warnings += [f"parameter {name} has no description" for name, part in parameters if not part.get("description")]
    place = f"{_file_of(declared)}: tool {name}" if warnings else ""
    return [], [f"{place}: {warning}" for warning in warnings]


def duplicate_names(tools: Iterable[DeclaredTool]) -> list[str]:
    """Report tools of one name, one line each: function tools of all folders, and methods of one folder.

    A function and a method of one folder may share a name: they are two kinds of one tool, never offered together.
    """
    tools = list(tools)
    functions = [each for each in tools if each.kind == "function"]
    seen: dict[object, DeclaredTool] = {}
    lines: list[str] = []
    for each in functions + [each for each in tools if each.kind == "method"]:
        first = seen.setdefault(each.name if each.kind == "function" else (each.folder, each.name), each)
        other = seen.get(each.name, each) if each.kind == "method" else first
        taken = first if first is not each else other
        if taken is not each and (taken.kind == each.kind or taken.folder != each.folder):
            lines.append(f"{_file_of(each)}: tool {each.name}: {_file_of(taken)} already has a tool of this name")
    return lines


def _called_function(declared: DeclaredTool) -> Callable[..., Any]:
    function: Any = declared.function
    if not isinstance(function, type):
        return declared.function
    call = inspect.getattr_static(function, "__call__", None)
    if not (inspect.isfunction(call) or isinstance(call, staticmethod)):
        raise ToolDefinitionError(f"tool {declared.name}: the class has no method __call__")
    bound: Callable[..., Any] = call.__get__(function, function)  # without ``self``
    return bound
