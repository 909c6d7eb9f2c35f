"""Requests of Anthropic's Messages: their schema, and their blocks as messages."""

import re
from collections.abc import Iterator
from typing import Annotated, Any, Literal, Self

from pydantic import AliasPath, BeforeValidator, Field, StrictBool, model_validator
from pydantic_core import to_json

from toolchat.messages import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolCall,
    ToolResponse,
    ToolResponseMessage,
    UserMessage,
    is_image,
)
from toolchat.service.protocols.messages import FieldNames, check_question, conversation, images_of, text_of
from toolchat.service.protocols.wire import (
    ModelRequest,
    Part,
    Refused,
    ToolDescription,
    Wire,
    model_name,
)

_NAMES = FieldNames("messages", "tool_use_id")
_CALLS = ("tool_use", "mcp_tool_use")
_RESULTS = ("tool_result", "mcp_tool_result")
_REQUIRED = {
    "tool_use": ("id", "name"),
    "mcp_tool_use": ("id", "name"),
    "tool_result": ("tool_use_id",),
    "mcp_tool_result": ("tool_use_id",),
}
_OF_PROVIDER = re.compile(r"(web_search|web_fetch|code_execution|advisor|tool_search_tool_(bm25|regex))(_[0-9]+)?")
"""Tools that Anthropic runs itself; what is not known may be the client's, and is refused."""


class Source(Wire):
    """The content of an image or a document."""

    type: str = ""
    media_type: str | None = None
    data: str | None = None
    url: str | None = None


class Block(Part):
    """A block of a message's content; of kinds that the model does not need, only the kind is read."""

    source: Source | None = None
    id: str | None = Field(None, min_length=1, max_length=256)
    name: str | None = None
    input: Any = None
    tool_use_id: str | None = Field(None, min_length=1, max_length=256)
    content: "list[Block] | str | None" = None
    is_error: bool | None = None

    @model_validator(mode="before")
    @classmethod
    def _read_kind(cls, value: object) -> object:
        if not isinstance(value, dict) or value.get("type") in ("text", "image", "document", *_REQUIRED):
            return value
        return {"type": value.get("type")}

    @model_validator(mode="after")
    def _check_fields(self) -> Self:
        for name in _REQUIRED.get(self.type, ()):
            if getattr(self, name) is None:
                raise ValueError(f"{name} is missing")
        return self

    def plain(self) -> str | None:
        """See :meth:`Part.plain`; a document may be text."""
        if self.type == "document" and self.source and self.source.type == "text":
            return self.source.data
        return super().plain()

    def image(self) -> str | None:
        """See :meth:`Part.image`."""
        if self.type != "image" or (source := self.source) is None:
            return None
        url = source.url if source.type == "url" else f"data:{source.media_type};base64,{source.data}"
        return url if url and is_image(url) else None

    def call(self) -> ToolCall:
        """The call of the block."""
        # Models write other input than an object at times, and clients send it back for ever.
        given = self.input if isinstance(self.input, dict) else {"input": self.input} if self.input else {}
        return ToolCall(self.id or "", model_name(self.name or "", None), to_json(given).decode())

    def result(self) -> ToolResponseMessage:
        """The result of the block, as the model reads it."""
        text = text_of(self.content)
        text = f"Error: {text}" if self.is_error and self.type == "tool_result" else text
        return ToolResponseMessage((ToolResponse(self.tool_use_id or "", "", text, images=images_of(self.content)),))


class BlockMessage(Wire):
    """One message of the conversation."""

    role: Literal["user", "assistant", "system"]
    content: list[Block] | str

    def messages(self) -> Iterator[Message]:
        """The message as the engine's: results are messages of their own, and so is each round of the assistant."""
        if self.role == "assistant":
            yield from self._rounds()
            return
        if not isinstance(self.content, str):
            yield from (block.result() for block in self.content if block.type in _RESULTS)
        if content := self.question():
            text = text_of(content)
            yield UserMessage(text, images_of(content)) if self.role == "user" else SystemMessage(text)

    def question(self) -> list[Block] | str:
        """The content without results."""
        if isinstance(self.content, str):
            return self.content
        return [block for block in self.content if block.type not in _RESULTS]

    def _rounds(self) -> Iterator[Message]:
        # Thinking and the tools of other providers belong to the model that wrote the message.
        texts, blocks = ([self.content], []) if isinstance(self.content, str) else (list[str](), self.content)
        for block in blocks:
            if block.type == "text":
                texts.append(block.text or "")
            elif block.type in _CALLS:
                yield AssistantMessage("".join(texts), (block.call(),))
                texts.clear()
            elif block.type in _RESULTS:
                yield block.result()
        if texts:
            yield AssistantMessage("".join(texts))


class AnthropicTool(Wire):
    """A tool that the client runs."""

    type: Literal["custom"] | None = None
    name: str = Field(pattern=r"^[A-Za-z0-9_-]{1,128}$")
    description: str | None = None
    input_schema: dict[str, Any]

    @property
    def schema_(self) -> dict[str, Any]:
        """The schema without keywords that are ``null``, as Claude Code sends ``required``; providers refuse them."""
        return {keyword: value for keyword, value in self.input_schema.items() if value is not None}

    @model_validator(mode="before")
    @classmethod
    def _refuse_others(cls, value: object) -> object:
        if isinstance(value, dict) and (kind := value.get("type")) not in (None, "custom"):
            raise ValueError(f"{str(kind)[:32]} is not supported; send tools with an input_schema")
        return value


def _without_provider_tools(value: object) -> object:
    # As on Responses: without a tool of its own a client counts on such a tool, and gets an error.
    if not isinstance(value, list):
        return value
    kinds = [str(each.get("type") if isinstance(each, dict) else "") for each in value]
    return [each for each, kind in zip(value, kinds, strict=True) if not _OF_PROVIDER.fullmatch(kind)] or value


_CHOICES = {"auto": "auto", "any": "required", "none": "none"}


def _read_choice(value: object) -> object:
    if value is None:
        return None
    kind, name = (value.get("type"), value.get("name")) if isinstance(value, dict) else (None, None)
    if kind == "tool" and isinstance(name, str):
        return model_name(name, None)
    if not isinstance(kind, str) or kind not in _CHOICES:
        raise ValueError("type must be auto, any, none, or tool with a name")
    return _CHOICES[kind]


class OutputFormat(Wire):
    """The form of the answer's text."""

    type: Literal["json_schema"]
    schema_: dict[str, Any] = Field(alias="schema")


class OutputConfig(Wire):
    """Options of the answer's text."""

    format: OutputFormat | None = None


class Thinking(Wire):
    """What the client wants of the model's reasoning; how much the model reasons is the provider's setting."""

    type: str
    display: str | None = None


class MessagesRequest(ModelRequest):
    """The body of ``POST /v1/messages``."""

    messages: list[BlockMessage] = Field(min_length=1, max_length=4096)
    system: list[Block] | str | None = None
    tools: Annotated[list[AnthropicTool] | None, Field(max_length=512), BeforeValidator(_without_provider_tools)] = None
    tool_choice: Annotated[str | None, BeforeValidator(_read_choice)] = None
    is_single: bool | None = Field(None, validation_alias=AliasPath("tool_choice", "disable_parallel_tool_use"))
    """Whether the model may make one call at a time."""
    max_tokens: int | None = Field(None, ge=1)
    stop: Annotated[list[str] | None, Field(max_length=16)] = Field(None, alias="stop_sequences")
    output_config: OutputConfig | None = None
    thinking: Thinking | None = None
    thread: Any = None
    """A conversation that the server holds, so that the client sends new messages only."""
    mcp_servers: Refused = None
    stream: StrictBool | None = None

    def functions_of_client(self) -> list[ToolDescription]:
        return [(model_name(each.name, None), each.description, each.schema_) for each in self.tools or ()]

    @property
    def client_tools(self) -> dict[str, str]:
        """The names of the client's tools, by the name that the model sees."""
        return {model_name(each.name, None): each.name for each in self.tools or ()}

    @property
    def shows_thinking(self) -> bool:
        """Whether the client shows the model's reasoning."""
        thinking = self.thinking
        return thinking is not None and thinking.type != "disabled" and thinking.display != "omitted"

    def options(self) -> dict[str, Any]:
        sent = super().options() | ({"parallel_tool_calls": False} if self.is_single else {})
        if self.output_config and (form := self.output_config.format):
            schema = {"name": "answer", "schema": form.schema_}
            sent["response_format"] = {"type": "json_schema", "json_schema": schema}
        return sent

    def conversation(self, instructions: str) -> tuple[Message, ...]:
        """The conversation below the service's instructions."""
        check_question([_as_question(each) for each in self.messages], "messages")
        sent = [(index, each) for index, message in enumerate(self.messages) for each in message.messages()]
        texts = (instructions, text_of(self.system))
        return conversation(sent, "\n\n".join(filter(None, texts)), _NAMES)


def _as_question(sent: BlockMessage) -> BlockMessage:
    return sent.model_copy(update={"role": "tool"}) if len(sent.question()) < len(sent.content) else sent
