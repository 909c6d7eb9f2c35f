"""Results of MCP servers: a text for the model, and the result as it came for MCP hosts and clients."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pydantic_core import to_json

from toolchat.messages import MAX_IMAGES, is_image
from toolchat.service.mcp_client.sanitizing import sanitize_text
from toolchat.tool_calling.errors import ToolExecutionError
from toolchat.tool_calling.results import DONE, ToolAnswer, json_or_text

if TYPE_CHECKING:
    from mcp_types import CallToolResult

MAX_ERROR_CHARS = 2000
MAX_LABEL_CHARS = 200

MCP_RESULT = "mcp_result"
"""The key of a tool's data under which a result of MCP is: its ``content``, and its ``structuredContent`` if any."""
RemoteResult = str | ToolAnswer[Any]
"""A text for the model; as a :class:`ToolAnswer` if the server has sent more than a text."""


def read_result(result: "CallToolResult") -> RemoteResult:
    """Turn a result into text for the model; what is more than text goes on to the client as it came."""
    texts = [text for block in result.content for text in _block_texts(block)]
    if result.is_error:
        message = sanitize_text("\n".join(texts), MAX_ERROR_CHARS)
        raise ToolExecutionError(message or "the tool failed without a message", kind="failed")
    structured = result.structured_content
    content = [block.model_dump(mode="json", by_alias=True, exclude_none=True) for block in result.content]
    if structured is not None and not _says_the_same(texts, content, structured):
        texts.append(to_json(structured, inf_nan_mode="strings").decode())
    text = "\n".join(texts) or DONE
    if structured is None and all(block.type == "text" for block in result.content):
        return text
    as_it_came = {"content": content} | ({} if structured is None else {"structuredContent": structured})
    return ToolAnswer(text, {MCP_RESULT: as_it_came}, tuple(_images(result.content))[:MAX_IMAGES])


def _images(content: Sequence[Any]) -> Iterator[str]:
    for block in content:
        if block.type == "image" and is_image(url := f"data:{block.mime_type};base64,{block.data}"):
            yield url


def _block_texts(block: Any) -> Iterator[str]:
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
    """A note in place of binary content, for models that read text only."""
    return f"[{kind}: {_label(media_type or 'unknown type')}, {len(data) * 3 // 4} bytes, not shown]"


def _label(text: str) -> str:
    return sanitize_text(text, MAX_LABEL_CHARS)


def _says_the_same(texts: Sequence[str], content: Sequence[Any], structured: Any) -> bool:
    """Whether a text, all texts together, or the blocks are the structured content, or the one value in it."""
    texts = [each.strip() for each in texts]
    whole = "\n".join(texts)
    said = [content, whole, texts, *texts]
    said += [json_or_text(whole), [json_or_text(each) for each in texts], *map(json_or_text, texts)]
    # Structured content had to be an object at first, so servers wrap a text, a number or a list: {"result": 5}.
    forms = [structured, *(structured.values() if isinstance(structured, dict) and len(structured) == 1 else ())]
    return bool(texts) and any((each.strip() if isinstance(each, str) else each) in said for each in forms)
