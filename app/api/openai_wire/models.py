"""The models that the service lists: its one chat model, with more or fewer of its tools."""

import time
from collections.abc import Sequence
from typing import Any

from app.api.openai_wire.errors import ModelNotFound
from app.api.service import ToolCatalogue
from app.callers import current_caller
from app.chat.advisors import Advisor
from app.errors import NotConfigured, NotFound
from app.tool_calling.callback import ToolCallback

__all__ = ["ALL", "PLAIN", "model_documents", "model_not_found", "offered_by"]

ALL = "toolchat"
"""Every tool of the service."""
PLAIN = "toolchat-plain"
"""No tool: for the titles and tags that chat pages ask for."""
_FOLDER = "toolchat-"
_BEGUN = int(time.time())


def model_documents(tools: ToolCatalogue) -> list[dict[str, Any]]:
    """Every model; those of folders that have no tool just now, or none that the caller may use, are left out."""
    folders = [each["name"] for each in tools.describe() if each["registered"]]
    names = [ALL, PLAIN, *(f"{_FOLDER}{name}" for name in folders if _has_usable(tools.for_folder(name)[0]))]
    return [{"id": name, "object": "model", "created": _BEGUN, "owned_by": "toolchat"} for name in names]


def offered_by(tools: ToolCatalogue, model: str) -> tuple[Sequence[object], Sequence[Advisor]]:
    """The tools of a model, and the advisors that go with them.

    Raises:
        ModelNotFound: there is none of this name; or its folder is not registered, and the detail says why.
    """
    if model == ALL:
        return tools.for_conversation(None)
    if model == PLAIN:
        return (), ()
    try:
        offered = tools.for_folder(model.removeprefix(_FOLDER)) if model.startswith(_FOLDER) else ((), ())
    except NotFound:
        raise model_not_found(model) from None
    except NotConfigured as error:
        raise model_not_found(model, error.detail) from error
    if not _has_usable(offered[0]):
        raise model_not_found(model)
    return offered


def _has_usable(tools: Sequence[object]) -> bool:
    may_use = current_caller.get().principal.may_use
    return any(isinstance(tool, ToolCallback) and may_use(tool.definition.name) for tool in tools)


def model_not_found(model: str, why: str = "") -> ModelNotFound:
    """Say that there is no such model, and where those that there are stand."""
    return ModelNotFound(f"the model {model[:64]!r} does not exist{why and f' ({why})'}; GET /v1/models lists them")
