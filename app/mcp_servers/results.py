"""What another server's tool gave back, as text for the model."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pydantic_core import from_json, to_json

from app.mcp_servers.foreign_text import shown_text
from app.tool_calling.errors import ToolExecutionError

if TYPE_CHECKING:
    from mcp_types import CallToolResult

__all__ = ["result_text"]

_LONGEST_ERROR = 2000
_LONGEST_LABEL = 200


def result_text(result: "CallToolResult") -> str:
    """The texts of a result, its structured content unless a text says the same, and a word for what is no text.

    Whatever is too long is shortened by the manager, as every tool's result is.

    Raises:
        ToolExecutionError: the tool says that it failed; the message is its own.
    """
    texts = [told for block in result.content for told in _told(block)]
    if result.is_error:
        told = shown_text("\n".join(texts), _LONGEST_ERROR)
        raise ToolExecutionError(told or "the tool failed and did not say why", kind="failed")
    structured = result.structured_content
    if structured is not None and not any(_says(text, structured) for text in texts):
        texts.append(to_json(structured, inf_nan_mode="strings").decode())
    return "\n".join(texts) or "Done"


def _told(block: Any) -> Iterator[str]:
    if block.type == "text":
        yield block.text
    elif block.type in ("image", "audio"):
        yield _bytes_note(block.type, block.mime_type, block.data)
    elif block.type == "resource_link":
        yield f"[resource {_label(block.name)}: {_label(str(block.uri))}]"
    elif block.type == "resource":
        resource = block.resource
        text = getattr(resource, "text", None)
        yield text if text is not None else _bytes_note("resource", resource.mime_type, resource.blob)


def _bytes_note(kind: str, media_type: str | None, data: str) -> str:
    """What a model that reads text can make of bytes."""
    return f"[{kind}: {_label(media_type or 'unknown type')}, {len(data) * 3 // 4} bytes, not shown]"


def _label(text: str) -> str:
    return shown_text(text, _LONGEST_LABEL)


def _says(text: str, structured: Any) -> bool:
    """Whether a text is the structured content; servers whose tools return no object put it under ``result``."""
    same = [structured]
    if isinstance(structured, dict) and structured.keys() == {"result"}:
        same.append(structured["result"])
    if text in same:
        return True
    try:
        return from_json(text) in same
    except ValueError:
        return False
