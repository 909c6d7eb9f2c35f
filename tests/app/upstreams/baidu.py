"""A fake of Baidu's general translation: its wire format, with a phrase book instead of a translator.

``GET`` or ``POST /baidu/api/trans/vip/translate`` with ``q``, ``from``, ``to``, ``appid``, ``salt`` and ``sign``,
form-encoded. The account is ``APP_ID`` and ``SECRET_KEY`` below; the sign is checked as Baidu checks it. Phrases of
the book are translated between its languages; every other line is returned as ``[en] line``, which cannot be mistaken
for a translation. Equal requests get equal answers, except for these:

=====================  =================================================================================
``q``                  answer
=====================  =================================================================================
``error:58001``        that error code, always; any code of the table
``error-int:58001``    the same with the code as a number
``error-once:52001``   that error code, at the next request a translation, then the error code again
=====================  =================================================================================

=====================  =================================================================================
``appid``              answer
=====================  =================================================================================
``sandbox``            no limit
``sandbox-qps-5``      error 54003 for the sixth request within a second; any number from 1 to 1000
=====================  =================================================================================

The secret key is the same for every app id. A text of more than 6000 bytes gets 52001, as Baidu documents; an unknown
app id 52003, a wrong sign 54001, a missing field 54000, an unlisted language 58001.
"""

import hashlib
import json
import re
import time
from collections import deque
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import BaseRoute, Route

from tests.app.upstreams.phrase_book import detect_language, translate_line

APP_ID = "sandbox"
SECRET_KEY = "sandbox"

_FIELDS = ("q", "from", "to", "appid", "salt", "sign")
_MAX_BODY_BYTES = 64 * 1024
_MAX_TEXT_BYTES = 6000
_CODES = "zh en yue wyw jp kor fra spa th ara ru pt de it el nl pl bul est dan fin cs rom slo swe hu cht vie"
_LANGUAGES = frozenset(_CODES.split())
_MESSAGES = {
    "52001": "TIMEOUT",
    "52002": "SYSTEM ERROR",
    "52003": "UNAUTHORIZED USER",
    "54000": "PARAM_FROM_TO_OR_Q_EMPTY",
    "54001": "Invalid Sign",
    "54003": "Invalid Access Limit",
    "54004": "Please recharge",
    "54005": "Long query too frequent",
    "58000": "INVALID_CLIENT_IP",
    "58001": "INVALID_TO_PARAM",
    "58002": "SERVICE CLOSED",
    "58003": "IP BANNED",
    "90107": "Certification not passed",
    "20003": "Text has a safety risk",
}


class _Escaped(JSONResponse):
    """JSON in ASCII, as Baidu writes it."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content, separators=(",", ":")).encode("ascii")


class _Memory:
    """The state of one sandbox: the ``error-once`` texts answered by an error, and the arrival times by app id."""

    def __init__(self) -> None:
        self.failed_once: set[str] = set()
        self.arrivals: dict[str, deque[float]] = {}

    @classmethod
    def of(cls, app: Starlette) -> "_Memory":
        if not hasattr(app.state, "baidu"):
            app.state.baidu = cls()
        memory = app.state.baidu
        assert isinstance(memory, cls)
        return memory


async def translate(request: Request) -> JSONResponse:
    """Answer one request as Baidu would; an error has HTTP status 200 as well."""
    fields = await _fields(request)
    if fields is None:
        return JSONResponse({"detail": "the request is too long"}, status_code=413)
    code = _refusal(fields, _Memory.of(request.app))
    if code is not None:
        shown = int(code) if fields.get("q", "").startswith("error-int:") else code
        return _Escaped({"error_code": shown, "error_msg": _MESSAGES[code]})
    source, target = fields["from"], fields["to"]
    lines = [line for line in fields["q"].split("\n") if line.strip()]
    source = detect_language(lines[0]) if source == "auto" else source
    results = [{"src": line, "dst": translate_line(line, source, target)} for line in lines]
    return _Escaped({"from": source, "to": target, "trans_result": results})


routes: list[BaseRoute] = [Route("/baidu/api/trans/vip/translate", translate, methods=["GET", "POST"])]
"""The routes that imitate Baidu."""


async def _fields(request: Request) -> dict[str, str] | None:
    """The first value of each field of a form or query; ``None`` if the request is too long."""
    form = bytearray(request.url.query.encode() if request.method == "GET" else b"")
    async for piece in request.stream():
        form += piece
        if len(form) > _MAX_BODY_BYTES:
            return None
    try:
        pairs = parse_qsl(form.decode("ascii", "replace"), keep_blank_values=True, max_num_fields=20)
    except ValueError:
        return {}
    # Reversed, so that the first of several values stays.
    return dict(reversed(pairs))


def _refusal(fields: Mapping[str, str], memory: _Memory) -> str | None:
    """The code of the first fault that Baidu would report, or of the error that the text demands."""
    if not all(fields.get(name, "").strip() for name in _FIELDS):
        return "54000"
    limit = re.fullmatch(rf"{APP_ID}(?:-qps-([1-9]\d{{0,2}}|1000))?", fields["appid"])
    if limit is None:
        return "52003"
    if fields["sign"] != _sign(fields):
        return "54001"
    if fields["to"] not in _LANGUAGES or fields["from"] not in _LANGUAGES | {"auto"}:
        return "58001"
    if len(fields["q"].encode()) > _MAX_TEXT_BYTES:
        return "52001"
    if limit[1] and _is_over(int(limit[1]), memory.arrivals.setdefault(fields["appid"], deque())):
        return "54003"
    return _error_on_demand(fields["q"], memory.failed_once)


def _sign(fields: Mapping[str, str]) -> str:
    signed = f"{fields['appid']}{fields['q']}{fields['salt']}{SECRET_KEY}"
    return hashlib.md5(signed.encode(), usedforsecurity=False).hexdigest()


def _is_over(limit: int, arrivals: deque[float]) -> bool:
    now = time.monotonic()
    while arrivals and arrivals[0] <= now - 1:
        arrivals.popleft()
    if len(arrivals) >= limit:
        return True
    arrivals.append(now)
    return False


def _error_on_demand(text: str, failed_once: set[str]) -> str | None:
    demand = re.fullmatch(r"error(-int|-once)?:(\d{5})", text)
    if demand is None or demand[2] not in _MESSAGES:
        return None
    if demand[1] == "-once":
        if text in failed_once:
            failed_once.remove(text)
            return None
        failed_once.add(text)
    return demand[2]
