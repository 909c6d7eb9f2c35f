"""An identity provider: signs tokens, and publishes its keys on a real socket."""

import asyncio
import json
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa

__all__ = ["AUDIENCE", "ISSUER", "Issuer"]

ISSUER, AUDIENCE = "https://id.example.org", "toolchat"


class Issuer:
    """Has one RSA and one EC key; ``published`` says which of them anybody can fetch."""

    def __init__(self) -> None:
        self.rsa = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.ec = ec.generate_private_key(ec.SECP256R1())
        self.published = ["rsa", "ec"]
        self.body: bytes | None = None
        """What is published instead, where a test says so."""
        self.fetched = 0

    def token(self, key: str = "rsa", header: dict[str, Any] | None = None, **claims: Any) -> str:
        """A token that is valid unless the claims make it something else; a claim of ``None`` is left out."""
        told = {"iss": ISSUER, "aud": AUDIENCE, "sub": "alice", "exp": time.time() + 600} | claims
        told = {name: value for name, value in told.items() if value is not None}
        signing, algorithm = (self.rsa, "RS256") if key == "rsa" else (self.ec, "ES256")
        return jwt.encode(told, signing, algorithm, headers={"kid": key} | (header or {}))

    def _document(self) -> bytes:
        keys = {
            "rsa": jwt.algorithms.RSAAlgorithm.to_jwk(self.rsa.public_key(), as_dict=True),
            "ec": jwt.algorithms.ECAlgorithm.to_jwk(self.ec.public_key(), as_dict=True),
        }
        return json.dumps({"keys": [keys[name] | {"kid": name} for name in self.published]}).encode()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        self.fetched += 1
        body = self._document() if self.body is None else self.body
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
        await writer.drain()
        writer.close()

    @asynccontextmanager
    async def serving(self) -> AsyncGenerator[str, None]:
        """Publish the keys; gives their URL."""
        async with await asyncio.start_server(self._answer, "127.0.0.1", 0) as server:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/jwks"
