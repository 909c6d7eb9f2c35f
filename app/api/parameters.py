"""What a question is asked with: in the URL of a GET or the JSON body of a POST, checked and documented alike."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn
from urllib.parse import unquote_to_bytes

from fastapi import Request
from pydantic_core import from_json

from toolchat.errors import InvalidRequest, UnsupportedMediaType, ValidationFailed

__all__ = [
    "NOT_BLANK",
    "NOT_BLANK_TOLD",
    "Parameter",
    "Parameters",
    "checked_text",
    "json_object",
    "refuse_parameters",
    "refuse_unknown",
]

NOT_BLANK: Mapping[str, Any] = {"not": {"pattern": r"\u0000|^[\s\u001c-\u001f\u0085]+$"}}
"""The schema of a text that has something in it, or is empty: what is checked here, in a machine's words.

By what must not match, since Swagger UI shows people every other pattern; these are told by the description.
"""
NOT_BLANK_TOLD = "Not blank, without NUL"
"""The same for people."""

_JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Parameter:
    """One thing that a question is asked with: a text, or a list of texts."""

    name: str
    schema: Mapping[str, Any]
    """JSON Schema; its ``type`` (string or array), ``maxLength`` and ``maxItems`` are what is checked."""
    description: str
    examples: Mapping[str, str] = field(default_factory=dict)
    """For the documentation, by label."""

    def of_texts(self, texts: Sequence[str]) -> str | list[str]:
        """The value of the texts that were given for it, one for each time.

        Raises:
            ValidationFailed: a text is given more than once, is blank or too long, or there are too many.
        """
        if self.schema["type"] == "array":
            if len(texts) > self.schema["maxItems"]:
                raise ValidationFailed(f"{self.name}: List should have at most {self.schema['maxItems']} items")
            return list(texts)
        if len(texts) > 1:
            raise ValidationFailed(f"{self.name}: given more than once")
        return checked_text(self.name, texts[0], self.schema["maxLength"]) if "maxLength" in self.schema else texts[0]

    def texts_of(self, value: object) -> list[str]:
        """The texts of a value in a JSON body.

        Raises:
            ValidationFailed: it is of another type, or a text of it is none that could stand in a URL.
        """
        is_list = self.schema["type"] == "array"
        texts = value if is_list else [value]
        if not isinstance(texts, list) or not all(isinstance(each, str) for each in texts):
            raise ValidationFailed(f"{self.name}: must be a {'list of strings' if is_list else 'string'}")
        for text in texts:
            if "\x00" in text:
                raise ValidationFailed(f"{self.name}: holds a NUL character")
            if not text.isascii() and text.encode("utf-8", "replace").decode() != text:
                raise ValidationFailed(f"{self.name}: holds half a character, a lone surrogate")
        return texts

    def in_url(self) -> dict[str, Any]:
        """The parameter object of OpenAPI."""
        shown = {"examples": {label: {"value": text} for label, text in self.examples.items()}} if self.examples else {}
        told = {"name": self.name, "in": "query", "required": False, "description": self.description}
        return told | {"schema": dict(self.schema)} | shown


class Parameters:
    """Everything that a question of one route is asked with.

    Args:
        parameters: what there is; all else is refused.
        url_of_post: whether a POST may give them in its URL as well, for routes that always did.
        rules: what the documentation says of a body beside its fields; checked by whoever reads them.
    """

    def __init__(
        self, *parameters: Parameter, url_of_post: bool = False, rules: Mapping[str, Any] | None = None
    ) -> None:
        self._rules = rules or {}
        self._known = {each.name: each for each in parameters}
        self._url_of_post = url_of_post

    async def read(self, request: Request) -> dict[str, Any]:
        """What a request gives, by name: a text, or a list of texts; what is missing is absent.

        Raises:
            InvalidRequest: the body is no JSON.
            UnsupportedMediaType: the body says of itself that it is none.
            ValidationFailed: a parameter is unknown, given twice, of another type, blank or too long.
        """
        given: dict[str, list[str]] = {}
        if request.scope["query_string"]:
            for name, text in _pairs(request.scope["query_string"]):
                given.setdefault(name, []).append(text)
            refuse_unknown(given, self._known)
        if request.method == "POST":
            await self._add_body(request, given)
        return {name: self._known[name].of_texts(texts) for name, texts in given.items()}

    async def _add_body(self, request: Request, given: dict[str, list[str]]) -> None:
        if given and not self._url_of_post:
            raise ValidationFailed(f"{next(iter(given))}: belongs into the JSON body of a POST, not into its URL")
        body = await json_object(request)
        refuse_unknown(body, self._known)
        for name, value in body.items():
            if name in given:
                raise ValidationFailed(f"{name}: given in the URL and in the body")
            given[name] = self._known[name].texts_of(value)

    def documented(self, method: str) -> dict[str, Any]:
        """What OpenAPI says of an operation that takes them, for a route's ``openapi_extra``."""
        url = {"parameters": [each.in_url() for each in self._known.values()]}
        if method == "GET":
            return url
        return self._in_body() | (url if self._url_of_post else {})

    def _in_body(self) -> dict[str, Any]:
        properties = {name: {**each.schema, "description": each.description} for name, each in self._known.items()}
        schema = {"type": "object", "properties": properties, "additionalProperties": False, **self._rules}
        texts = [(label, each.name, text) for each in self._known.values() for label, text in each.examples.items()]
        examples = {label: {"value": {name: text}} for label, name, text in texts}
        return {"requestBody": {"required": False, "content": {_JSON: {"schema": schema, "examples": examples}}}}


def _pairs(query_string: bytes) -> Iterator[tuple[str, str]]:
    """The names and texts of a URL; ``urllib.parse.parse_qsl`` takes three times as long for the same."""
    for pair in query_string.replace(b"+", b" ").split(b"&"):
        if pair:
            name, _, text = pair.partition(b"=")
            yield unquote_to_bytes(name).decode(errors="replace"), unquote_to_bytes(text).decode(errors="replace")


def checked_text(name: str, text: str, longest: int) -> str:
    """A text within the limits; raises :class:`ValidationFailed` for one that is blank or too long."""
    if len(text) > longest:
        raise ValidationFailed(f"{name}: String should have at most {longest} characters")
    if text and not text.strip():
        raise ValidationFailed(f"{name}: must not be blank")
    return text


def refuse_unknown(given: Iterable[str], known: Iterable[str]) -> None:
    """Let names pass that are known.

    A mistyped ``session_id`` would else begin a new conversation with every question, and nobody would know why the
    model remembers nothing.

    Raises:
        ValidationFailed: one is unknown; the detail names the nearest one that there is.
    """
    for name in given:
        if name not in known:
            import difflib  # which hardly any start needs

            near = difflib.get_close_matches(name[:64].lower().replace("_", ""), known, n=1, cutoff=0.4)
            meant = f"; did you mean {near[0]}?" if near else f"; known: {', '.join(known) or 'none'}"
            raise ValidationFailed(f"{_shown(name)}: there is no such parameter{meant}")


async def refuse_parameters(request: Request) -> None:
    """Let a request pass that has none; a dependency of routes that take none in their URL."""
    refuse_unknown(request.query_params, ())


async def json_object(request: Request) -> dict[str, Any]:
    """The JSON object in a request's body; an empty one where there is no body.

    Raises:
        InvalidRequest: it is no JSON, or nested too deeply.
        UnsupportedMediaType: the header does not say ``application/json``.
        ValidationFailed: it is no object, or has a name twice.
    """
    body = await request.body()
    said = request.headers.get("content-type", "")
    if (body or said) and said.split(";")[0].strip().lower() != _JSON:
        raise UnsupportedMediaType(f"the body must be {_JSON}, and say so in Content-Type")
    try:
        text = body.decode() or "{}"
        _refuse_depth(text)
        value = json.loads(text, object_pairs_hook=_object, parse_constant=_no_json)
    except RecursionError:
        raise InvalidRequest("body: is nested too deeply") from None
    except ValueError as error:
        raise InvalidRequest(f"body: is no JSON: {error}") from None
    if not isinstance(value, dict):
        raise ValidationFailed("body: must be a JSON object")
    return value


def _refuse_depth(text: str) -> None:
    """Refuse what nests deeper than 200; ``json.loads`` goes on to the end of the stack.

    There Python has no room left for who listens to the garbage collector either, and complains on standard error.
    """
    try:
        from_json(text)
    except ValueError as error:
        if str(error).startswith("recursion limit"):
            raise InvalidRequest("body: is nested too deeply") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name, value in pairs:
        if name in made:
            raise ValidationFailed(f"{_shown(name)}: given more than once")
        made[name] = value
    return made


def _shown(name: str) -> str:
    return name[:64].encode("utf-8", "replace").decode()


def _no_json(word: str) -> NoReturn:
    raise ValueError(f"{word} is not part of it")
