"""Tokens of an identity provider: JSON Web Tokens (RFC 7519), verified with its published keys (RFC 7517).

The service is a resource server only: it issues no tokens and redirects no browsers. It needs PyJWT (extra ``jwt``).
"""

import hashlib
import logging
import re
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

from pydantic import AfterValidator, Field, model_validator
from pydantic_core import from_json

from toolchat.errors import ToolchatError, Unauthorized, UpstreamInvalid
from toolchat.http.client import OutboundHttp
from toolchat.service.access.principals import ASK, ROLE_PATTERN, Principal
from toolchat.service.settings.base import EnvironmentSettings, Texts
from toolchat.tool_calling.setting_types import Url

if TYPE_CHECKING:
    import jwt

_log = logging.getLogger(__name__)
_ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Asymmetric signatures only: with a shared key the service could forge tokens, and ``none`` is unsigned."""
_CLAIMS = {"name": "sub", "roles": "roles", "tools": "tools", "tenant": "tenant"}
"""The claim of each property of a principal, unless ``JWT_CLAIMS`` names another."""
_KEYS_TTL = 300.0
"""Seconds after which the provider's keys are fetched again."""
_MIN_FETCH_INTERVAL = 10.0
"""Seconds between two requests to the provider, even if a key is unknown or it did not answer."""
_LEEWAY = 30
"""Tolerated difference of clocks, in seconds."""
_LONGEST = 8192
_LONGEST_NAME = 256
_REMEMBERED = 1000


def _check_claims(values: tuple[str, ...]) -> tuple[str, ...]:
    for each in values:
        meaning, separator, claim = each.partition("=")
        if meaning not in _CLAIMS or not separator or not claim.strip():
            raise ValueError(f"{each[:64]} is not one of name=, roles=, tools= and tenant=, followed by a claim")
    return values


class TokenSettings(EnvironmentSettings):
    """Tokens of an identity provider."""

    jwt_jwks_url: Url | None = Field(
        None, description="URL of the identity provider's public keys (JWKS); without it no tokens are accepted"
    )
    jwt_issuer: str = Field("", description="Required iss claim of a token; must be set with JWT_JWKS_URL")
    jwt_audience: str = Field("", description="Required aud claim of a token; must be set with JWT_JWKS_URL")
    jwt_claims: Annotated[Texts, AfterValidator(_check_claims)] = Field(
        tuple(f"{meaning}={claim}" for meaning, claim in _CLAIMS.items()),
        description="Claims with the principal's name, roles (if missing: ask), tools (if missing: all) and tenant "
        "(if missing: the name); claims that are not listed keep their default",
    )

    def claim(self, meaning: str) -> str:
        """The claim with the principal's name, roles, tools or tenant."""
        return dict(each.split("=", 1) for each in self.jwt_claims).get(meaning, _CLAIMS[meaning])

    @property
    def is_set(self) -> bool:
        """Whether tokens are taken."""
        return self.jwt_jwks_url is not None

    @model_validator(mode="after")
    def _complete(self) -> "TokenSettings":
        if not self.is_set:
            return self
        if not (self.jwt_issuer and self.jwt_audience):
            raise ValueError("JWT_JWKS_URL needs JWT_ISSUER and JWT_AUDIENCE")
        if find_spec("jwt") is None:
            raise ValueError("JWT_JWKS_URL needs PyJWT, the extra jwt: pip install '.[jwt]'")
        return self


class Tokens:
    """Validates the tokens of one identity provider."""

    def __init__(self, settings: TokenSettings, http: OutboundHttp) -> None:
        self._settings = settings
        self._http = http
        self._keys: Mapping[str, jwt.PyJWK] = {}
        self._fetched = self._asked = -_KEYS_TTL
        self._seen: OrderedDict[bytes, tuple[Principal, float]] = OrderedDict()

    async def principal(self, token: str) -> Principal:
        """The principal of a token."""
        if len(token) > _LONGEST:
            raise Unauthorized(f"the token is longer than {_LONGEST} characters")
        digest = hashlib.sha256(token.encode()).digest()
        # Verifying a signature costs more than the rest of the guard, and one token is sent with many requests.
        principal, checked = self._seen.pop(digest, (None, 0.0))
        if principal is None or time.monotonic() - checked >= _KEYS_TTL:
            principal, checked = await self._verified(token), time.monotonic()
        if principal.has_expired:
            raise Unauthorized("the token has expired")
        self._seen[digest] = principal, checked
        if len(self._seen) > _REMEMBERED:
            self._seen.popitem(last=False)
        return principal

    async def _verified(self, token: str) -> Principal:
        import jwt

        # A signed token may hold anything that JSON can: numbers that are no date, texts where numbers belong.
        unreadable = (jwt.PyJWTError, ValueError, TypeError, ArithmeticError, OSError, RecursionError)
        try:
            return self._principal(await self._claims(token))
        except unreadable as error:
            raise Unauthorized(f"the token is not valid: {str(error)[:100] or type(error).__name__}") from None

    async def _claims(self, token: str) -> Mapping[str, Any]:
        import jwt

        settings = self._settings
        header = jwt.get_unverified_header(token)
        key = await self._key(str(header.get("kid", "")))
        if key is None:
            raise ValueError("the identity provider is known to publish no such key")
        if header.get("alg") not in _ALGORITHMS:
            raise ValueError("its signature algorithm is not accepted")
        return jwt.decode(
            token,
            key,
            algorithms=list(_ALGORITHMS),
            audience=settings.jwt_audience,
            issuer=settings.jwt_issuer,
            leeway=_LEEWAY,
            options={"require": ["exp", "iss", "aud"]},
        )

    def _principal(self, claims: Mapping[str, Any]) -> Principal:
        settings = self._settings
        name = _name(claims, settings.claim("name"))
        given = _texts(claims.get(settings.claim("roles")), [ASK])
        roles = frozenset(each for each in given if re.fullmatch(ROLE_PATTERN, each))
        tools = tuple(_texts(claims.get(settings.claim("tools")), ["*"]))
        # Names of API keys contain no colon, so a token's principal never shares the data of a key's.
        claim = settings.claim("tenant")
        tenant = _name(claims, claim) if claim in claims else ""
        expires = datetime.fromtimestamp(float(claims["exp"]) + _LEEWAY, UTC)
        return Principal(f"jwt:{quote(name, safe='')}", tools, roles, expires=expires, tenant=tenant)

    async def _key(self, identifier: str) -> "jwt.PyJWK | None":
        """The provider's key by id; fetched again if it is old or unknown, but not for each forged id."""
        now = time.monotonic()
        stale = now - self._fetched >= _KEYS_TTL or identifier not in self._keys
        if stale and now - self._asked >= _MIN_FETCH_INTERVAL:
            self._asked = now
            await self._fetch()
        return self._keys.get(identifier)

    async def published_keys(self) -> "Mapping[str, jwt.PyJWK]":
        """Fetch the provider's keys, by id."""
        import jwt

        reply = await self._http.fetch("GET", str(self._settings.jwt_jwks_url), upstream="JWKS", timeout=5)
        try:
            published = jwt.PyJWKSet.from_dict(from_json(reply.body)).keys
        except (jwt.PyJWTError, ValueError, TypeError, AttributeError):
            detail = f"the identity provider answered {reply.status} without usable keys; check JWT_JWKS_URL"
            raise UpstreamInvalid(detail) from None
        return {key.key_id or "": key for key in published if key.public_key_use != "enc"}

    async def _fetch(self) -> None:
        try:
            self._keys, self._fetched = await self.published_keys(), time.monotonic()
        except ToolchatError as error:
            # The old keys stay valid: an outage of the provider must not lock out all clients.
            _log.warning("the identity provider's keys cannot be read", extra={"reason": error.for_operators})


def _name(claims: Mapping[str, Any], claim: str) -> str:
    """A claim that is a name, in 1 to 256 characters."""
    name = claims.get(claim)
    if not isinstance(name, str) or not 0 < len(name) <= _LONGEST_NAME:
        raise ValueError(f"the claim {claim} is not a text of 1 to {_LONGEST_NAME} characters")
    return name


def _texts(claim: object, otherwise: Sequence[str]) -> list[str]:
    """A claim as a list: an array, or words separated by spaces, as in OAuth's ``scope``."""
    if claim is None:
        return list(otherwise)
    parts = claim.split() if isinstance(claim, str) else claim if isinstance(claim, list) else []
    return [each for each in parts if isinstance(each, str)][:256]
