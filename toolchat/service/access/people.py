"""People behind a trusted page: a key that speaks for them names each by a header or by a signed token.

Open WebUI sends ``X-OpenWebUI-User-Id``, or, with ``FORWARD_USER_INFO_HEADER_JWT_SECRET``, an HS256 token with the
claim ``sub`` in ``X-OpenWebUI-User-Jwt``; LibreChat sends what its file says, such as ``{{LIBRECHAT_USER_ID}}``.
"""

from collections.abc import Sequence
from typing import Annotated, Any
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, Field, SecretStr, model_validator

from toolchat.errors import Unauthorized, ValidationFailed

SEPARATOR = "~"
"""Between the name of a key and that of a person; names of keys and of tokens' principals do not contain it."""
_LONGEST = 256
_LEEWAY = 30
"""Seconds by which the clocks of the page and of this machine may differ."""
_HEADER = "^[A-Za-z0-9-]+$"
_Count = Annotated[int, Field(ge=1)]


class People(BaseModel):
    """The table ``[keys.people]`` of a key that speaks for people; the limits are those of one person."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)

    header: str = Field("", pattern=f"{_HEADER}|^$")
    token_header: str = Field("", pattern=f"{_HEADER}|^$")
    """The header with a token, signed by ``PEOPLE_JWT_SECRET``; it is used in place of ``header``."""
    tenant_header: str = Field("", pattern=f"{_HEADER}|^$")
    requests_per_minute: _Count | None = None
    concurrent: _Count | None = None
    tokens_per_day: _Count | None = None

    @model_validator(mode="after")
    def _names_somebody(self) -> "People":
        if bool(self.header) == bool(self.token_header):
            raise ValueError("needs either header or token_header")
        return self

    @property
    def limits(self) -> dict[str, Any]:
        """The limits of one person."""
        return self.model_dump(include={"requests_per_minute", "concurrent", "tokens_per_day"})

    @property
    def naming_header(self) -> str:
        """The header that names somebody."""
        return self.token_header or self.header


def person_of(people: People, headers: Sequence[tuple[bytes, bytes]], secret: SecretStr | None) -> tuple[str, str]:
    """The person and the tenant that a request is for; the person is empty if it names none."""
    name = people.naming_header
    person = _sent(headers, name)
    if person and people.token_header:
        name, person = f"the claim sub of {name}", _subject(person, secret)
    tenant = _checked(people.tenant_header, _sent(headers, people.tenant_header)) if people.tenant_header else ""
    return quote(_checked(name, person), safe="@"), tenant


def _sent(headers: Sequence[tuple[bytes, bytes]], name: str) -> str:
    values = {value for each, value in headers if each == name.lower().encode()}
    if len(values) > 1:
        raise ValidationFailed(f"{name}: given more than once")
    return values.pop().decode("utf-8", "replace").strip() if values else ""


def _checked(name: str, value: str) -> str:
    if len(value) > _LONGEST or not value.isprintable() or "\ufffd" in value:
        raise ValidationFailed(f"{name}: must have at most {_LONGEST} visible characters, in UTF-8")
    return value


def _subject(token: str, secret: SecretStr | None) -> str:
    """The claim ``sub`` of a token that the page has signed."""
    import jwt  # only services whose pages sign need it

    if secret is None:  # which anybody could sign with
        raise Unauthorized("PEOPLE_JWT_SECRET is not set, so nobody can be named by a token")
    try:
        options: Any = {"require": ["exp", "sub"]}
        claims = jwt.decode(token, secret.get_secret_value(), algorithms=["HS256"], leeway=_LEEWAY, options=options)
    except jwt.PyJWTError as error:
        raise Unauthorized(f"the token of the person is not valid: {str(error)[:100]}") from None
    return str(claims["sub"])
