"""Parameters of questions: read from the URL of a GET or the JSON body of a POST, validated and documented."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from fastapi import Request
from pydantic_core import from_json

from toolchat.errors import InvalidRequest, UnsupportedMediaType, ValidationFailed
from toolchat.service.access.hosts import header
from toolchat.service.api.body_limits import body_of
from toolchat.service.settings.typos import suggest

NOT_BLANK: Mapping[str, Any] = {"not": {"pattern": r"\u0000|^[\s\u001c-\u001f\u0085]+$"}}
"""The schema of a text that is empty or not blank, without NUL.

It uses ``not`` because Swagger UI would show any other pattern to people; for them there is a description.
"""
NOT_BLANK_DESCRIPTION = "Not blank, without NUL"
"""The same rule for descriptions."""

_JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter: a string, a list of strings, or a whole number."""

    name: str
    schema: Mapping[str, Any]
    """JSON Schema; ``type`` (string, array or integer), ``maxLength``, ``maxItems`` and ``maximum`` are enforced."""
    description: str
    examples: Mapping[str, str] = field(default_factory=dict)
    """For the documentation, by label."""

    def checked(self, given: object, longest: int, hint: str = "") -> str | list[str] | int:
        """The value that was sent in a body, or in a URL as text; raises ``ValidationFailed``."""
        kind = self.schema["type"]
        if kind == "integer":
            return self._number(given)
        texts = given if kind == "array" else [given]
        if not isinstance(texts, list) or not all(isinstance(each, str) for each in texts):
            raise ValidationFailed(f"{self.name}: must be a {'list of strings' if kind == 'array' else 'string'}")
        for each in texts:
            self._check_characters(each)
        if kind == "array":
            if len(texts) > self.schema["maxItems"]:
                raise ValidationFailed(f"{self.name}: List should have at most {self.schema['maxItems']} items")
            return texts
        text: str = texts[0]
        if "maxLength" in self.schema:
            if len(text) > longest:
                raise ValidationFailed(
                    f"{self.name}: must have at most {longest} characters, and has {len(text)}{hint}"
                )
            if text and not text.strip():
                raise ValidationFailed(f"{self.name}: must not be blank")
        return text

    def in_query(self, texts: list[str]) -> str | list[str] | int:
        """The value of all occurrences in a URL; raises ``ValidationFailed``."""
        if self.schema["type"] == "array":
            return self.checked(texts, 0)
        if len(texts) > 1:
            raise ValidationFailed(f"{self.name}: given more than once")
        return self.checked(
            texts[0], self.schema.get("maxLength", 0), "; send a longer text in the JSON body of a POST"
        )

    def _number(self, given: object) -> int:
        most: int = self.schema["maximum"]
        text = str(given) if isinstance(given, int | str) and not isinstance(given, bool) else ""
        if not (text.isascii() and text.isdigit() and len(text) <= len(str(most)) and int(text) <= most):
            raise ValidationFailed(f"{self.name}: must be a whole number from 0 to {most}")
        return int(text)

    def _check_characters(self, text: str) -> None:
        if "\x00" in text:
            raise ValidationFailed(f"{self.name}: contains a NUL character")
        if not text.isascii() and text.encode("utf-8", "replace").decode() != text:
            raise ValidationFailed(f"{self.name}: contains a lone surrogate, which is half a character")

    def documented(self, place: str = "query") -> dict[str, Any]:
        """The parameter object of OpenAPI."""
        shown = {"examples": {label: {"value": text} for label, text in self.examples.items()}} if self.examples else {}
        parameter = {"name": self.name, "in": place, "required": place == "path", "description": self.description}
        return parameter | {"schema": dict(self.schema)} | shown

    def in_body(self) -> dict[str, Any]:
        """The schema of the field of a body; its length is limited by a setting."""
        schema = {name: value for name, value in self.schema.items() if name != "maxLength"}
        limit = "; at most `QUESTION_MAX_CHARS` characters" if "maxLength" in self.schema else ""
        return schema | {"description": f"{self.description}{limit}"}


class Parameters:
    """The parameters of a route's questions."""

    responses: dict[int | str, dict[str, Any]]
    """The responses to a question, for OpenAPI."""

    def __init__(
        self,
        *parameters: Parameter,
        of_body: Sequence[Parameter] = (),
        url_of_post: bool = False,
        rules: Mapping[str, Any] | None = None,
    ) -> None:
        self._rules = rules or {}
        self._known = {each.name: each for each in parameters}
        self._of_post = self._known | {each.name: each for each in of_body}
        self._url_of_post = url_of_post

    async def values(self, request: Request) -> dict[str, Any]:
        """The values of a request by name; missing parameters are absent."""
        values = self.in_url(request)
        return values if request.method == "GET" else values | await self._in_body(request, values)

    def in_url(self, request: Request) -> dict[str, Any]:
        given: dict[str, list[str]] = {}
        for name, text in _pairs(request.scope["query_string"]):
            given.setdefault(name, []).append(text)
        known = self._known if request.method == "GET" else self._of_post
        _refuse_unknown(given, known)
        return {name: known[name].in_query(texts) for name, texts in given.items()}

    async def _in_body(self, request: Request, in_url: Mapping[str, Any]) -> dict[str, Any]:
        if in_url and not self._url_of_post:
            raise ValidationFailed(f"{next(iter(in_url))}: belongs in the JSON body of a POST, not in its URL")
        given = await json_object(request)
        _refuse_unknown(given, self._of_post)
        if twice := next((name for name in given if name in in_url), None):
            raise ValidationFailed(f"{twice}: given in the URL and in the body")
        longest: int = request.app.state.question_max_chars
        return {name: self._of_post[name].checked(value, longest) for name, value in given.items()}

    def documented(self, method: str) -> dict[str, Any]:
        """Their part of an OpenAPI operation, for a route's ``openapi_extra``."""
        url = {"parameters": [each.documented() for each in self._known.values()]}
        if method == "GET":
            return url
        properties = {name: each.in_body() for name, each in self._of_post.items()}
        schema = {"type": "object", "properties": properties, "additionalProperties": False, **self._rules}
        texts = [(label, each.name, text) for each in self._known.values() for label, text in each.examples.items()]
        examples = {label: {"value": {name: text}} for label, name, text in texts}
        body = {"required": False, "content": {_JSON: {"schema": schema, "examples": examples}}}
        return {"requestBody": body} | (url if self._url_of_post else {})


def _pairs(query_string: bytes) -> Iterator[tuple[str, str]]:
    """The names and values of a query string; ``urllib.parse.parse_qsl`` takes three times as long."""
    for pair in query_string.replace(b"+", b" ").split(b"&"):
        if pair:
            name, _, text = pair.partition(b"=")
            if b"%" in pair:  # in the question, but hardly in the names and ids beside it
                name, text = percent_decode(name), percent_decode(text)
            yield name.decode("utf-8", "replace"), text.decode("utf-8", "replace")


_ESCAPES = re.compile(b"(?:%[0-9A-Fa-f]{2})+")


def percent_decode(text: bytes) -> bytes:
    """Decode the escapes of a URL, a run at a time; ``urllib.parse.unquote_to_bytes`` does it byte by byte."""
    text = text.replace(b"%20", b" ")  # by far the most frequent one in English
    if b"%" not in text:
        return text
    return _ESCAPES.sub(lambda run: bytes.fromhex(run[0].replace(b"%", b"").decode()), text)


def _refuse_unknown(given: Iterable[str], known: Iterable[str]) -> None:
    # A mistyped ``session_id`` would otherwise silently start a new conversation with every question.
    for name in given:
        if name not in known:
            near = suggest(name[:64].lower().replace("_", ""), known)
            meant = f"; did you mean {near}?" if near else f"; known: {', '.join(known) or 'none'}"
            raise ValidationFailed(f"{_shown(name)}: there is no such parameter{meant}")


async def refuse_parameters(request: Request) -> None:
    """Reject query parameters; a dependency of routes that have none."""
    _refuse_unknown(request.query_params, ())


def require_json(request: Request) -> None:
    # A page of another site can send text/plain without a CORS preflight, but not application/json.
    if header(request.scope, b"content-type").partition(";")[0].strip().lower() != _JSON:
        raise UnsupportedMediaType(f"the body must be sent with Content-Type: {_JSON}")


async def json_object(request: Request) -> dict[str, Any]:
    body = await body_of(request)
    if body or "content-type" in request.headers:
        require_json(request)
    try:
        text = body.decode() or "{}"
        _refuse_depth(text)
        # Not pydantic's parser: it keeps the last of two values of one name, and a proxy may read the first (RFC 8259,
        # section 4).
        value = _DECODER.decode(text)
    except RecursionError:
        raise InvalidRequest("body: is nested too deeply") from None
    except ValueError as error:
        reason = str(error).partition("; use sys.")[0]  # Python's advice about an integer of thousands of digits
        raise InvalidRequest(f"body: is not valid JSON: {reason}") from None
    if not isinstance(value, dict):
        raise ValidationFailed("body: must be a JSON object")
    return value


def _refuse_depth(text: str) -> None:
    """Reject nesting deeper than 200, which is pydantic's limit."""
    # ``json.loads`` recurses until the stack is full; callbacks of the garbage collector then fail, too.
    try:
        from_json(text)
    except ValueError as error:
        if str(error).startswith("recursion limit"):
            raise InvalidRequest("body: is nested too deeply") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValidationFailed(f"{_shown(name)}: given more than once")
        found[name] = value
    return found


def _shown(name: str) -> str:
    return name[:64].encode("utf-8", "replace").decode()


def _reject_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not part of JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_reject_constant)
