"""Answers as typed objects."""

import re
from collections.abc import Sequence
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json

from app.messages import Message, UserMessage

__all__ = ["entity_from", "with_format"]

_T = TypeVar("_T")


def with_format(messages: Sequence[Message], model: type[Any]) -> tuple[Message, ...]:
    """The conversation with the JSON Schema of the wanted answer under its last question."""
    schema = to_json(TypeAdapter(model).json_schema()).decode()
    wish = f"Answer with JSON alone, without a code fence, that fits this JSON Schema: {schema}"
    last = max((place for place, each in enumerate(messages) if isinstance(each, UserMessage)), default=None)
    if last is None:
        return (*messages, UserMessage(wish))
    asked = messages[last]
    text = asked.text if isinstance(asked, UserMessage) else ""
    return (*messages[:last], UserMessage(f"{text}\n\n{wish}"), *messages[last + 1 :])


def entity_from(text: str, model: type[_T]) -> tuple[_T | None, str]:
    """Read an answer; a code fence around it is taken off.

    Returns:
        The object and an empty text, or nothing and what is wrong in words for the model.
    """
    fenced = re.search(r"```(?:json)?\s*\n(.*?)```", text, re.DOTALL)
    adapter: TypeAdapter[_T] = TypeAdapter(model)
    try:
        return adapter.validate_json(fenced[1] if fenced else text.strip()), ""
    except ValidationError as error:
        faults = error.errors(include_url=False, include_context=False, include_input=False)[:5]
        return None, "; ".join(f"{'.'.join(map(str, each['loc'])) or 'answer'}: {each['msg']}" for each in faults)
