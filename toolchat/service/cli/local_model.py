"""A model server on this machine, such as Ollama: found at start, and named in the banner; never used by itself."""

import asyncio
import re

from pydantic_core import from_json

from toolchat.errors import UpstreamError
from toolchat.http.client import OutboundHttp

_ADDRESS = "http://127.0.0.1:11434/v1"
"""Where Ollama listens; other OpenAI-compatible servers take the same port to be found."""
_SECONDS = 0.2
_MODEL = re.compile(r"[\w./:@-]{1,100}", re.ASCII)


def local_model_hint(address: str = _ADDRESS, seconds: float = _SECONDS) -> str:
    """Return a line for the banner with the variables that use the first model there; empty if none answers in time."""
    try:
        models = asyncio.run(_models(address, seconds))
    except UpstreamError:
        return ""
    names = (each.get("id") for each in models if isinstance(each, dict)) if isinstance(models, list) else ()
    # The name is foreign text, and printed in a command to copy.
    name = next((each for each in names if isinstance(each, str) and _MODEL.fullmatch(each)), None)
    if name is None:
        return ""
    return (
        f"\n  a model server answers on this machine; to use it, set OPENAI_BASE_URL={address} and OPENAI_MODEL={name}"
    )


async def _models(address: str, seconds: float) -> object:
    http = OutboundHttp(connect_timeout=seconds)
    try:
        reply = await http.fetch("GET", f"{address}/models", upstream="model server", timeout=seconds)
        body = from_json(reply.body)
        return body.get("data") if reply.status == 200 and isinstance(body, dict) else None
    except ValueError:
        return None
    finally:
        await http.aclose()
