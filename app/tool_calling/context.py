"""What a caller tells a tool behind the model's back."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, NoReturn, final

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.errors import PydanticUserError
from pydantic_core import CoreSchema, core_schema

from app.messages import Message

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    _Value = TypeVar("_Value", covariant=True, default=Any)
else:
    from typing import TypeVar

    _Value = TypeVar("_Value", covariant=True)

__all__ = ["CONVERSATION_ID", "ToolContext"]

CONVERSATION_ID = "conversation_id"
"""The value that names the conversation: what a tool or an advisor keeps between two questions is kept under it."""


_NOTHING: Mapping[str, Any] = MappingProxyType({})


@final
class ToolContext(Generic[_Value]):
    """Values for tools, such as a tenant, and the conversation that led to the call.

    It never enters a tool's schema, is never sent to the model and never made of what a model sends. A tool receives
    it by declaring one parameter of this type, alone, with ``| None`` or within ``Annotated``; without values it is
    empty, never missing. It cannot be changed: several calls share it.

    A class of one's own takes the place of names and ``Any``: where the caller gives ``ToolContext(value=Tenant())``, a
    tool that declares ``ToolContext[Tenant]`` reads ``context.value.name``, and a type checker knows it.
    """

    # No dataclass: pydantic would build a parametrised one out of a model's JSON, whatever the class itself says.
    __slots__ = ("history", "value", "values")

    values: Mapping[str, Any]
    history: tuple[Message, ...]
    """The messages before the call, oldest first, the assistant message with the call last."""
    value: _Value
    """The caller's own object; ``None`` where the caller gave none."""

    def __init__(
        self,
        values: Mapping[str, Any] = _NOTHING,
        history: tuple[Message, ...] = (),
        value: _Value = None,  # type: ignore[assignment]
    ) -> None:
        if not isinstance(values, MappingProxyType):
            values = MappingProxyType(dict(values))
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "history", history)
        object.__setattr__(self, "value", value)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a ToolContext cannot be changed: {name}")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a ToolContext cannot be changed: {name}")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ToolContext):
            return NotImplemented
        return (self.values, self.history, self.value) == (other.values, other.history, other.value)

    def get(self, key: str, default: Any = None) -> Any:
        """Look up one value."""
        return self.values.get(key, default)

    def with_values(self, values: Mapping[str, Any]) -> "ToolContext[_Value]":
        """Copy with further values; each takes the place of an earlier one of its name."""
        return ToolContext({**self.values, **values}, self.history, self.value)

    def with_history(self, history: tuple[Message, ...]) -> "ToolContext[_Value]":
        """Copy with another history."""
        return ToolContext(self.values, history, self.value)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        # A model class may hold one for its own use; no JSON is an instance, so none is ever made from a model's text.
        return core_schema.is_instance_schema(cls)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> NoReturn:
        raise PydanticUserError("a ToolContext comes from the caller alone, as a parameter of its own", code=None)
