"""Client of Baidu's general translation API: layout of texts, signature and answers."""

import hashlib
import math
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from pydantic import SecretStr

from app.tools.baidu_translate.error_codes import error_rule, translation_error
from app.tools.baidu_translate.languages import BAIDU
from app.tools.baidu_translate.rate_limiter import Pacer
from app.tools.baidu_translate.translator import (
    MAX_TEXT_BYTES,
    BaiduTranslateSettings,
    TranslationResult,
    Translator,
    nothing_to_translate,
    reported_language,
    too_long,
)
from app.upstreams import JsonReply
from toolchat import OutboundHttp, Reply, UpstreamInvalid, UpstreamUnavailable

_UPSTREAM = "Baidu translate"
_SANDBOX_ACCOUNT = "sandbox"
_NO_SECRET = SecretStr("")


@dataclass(frozen=True, slots=True)
class Layout:
    """The lines of a text without their indents, and the blanks and line breaks around them.

    Baidu translates line by line and says nothing about blank lines, so only lines with something in them are
    sent, and their translations are put back between the blanks of the original.
    """

    lines: tuple[str, ...]
    """What is translated: no line is invisible, starts or ends with a blank, or holds a line break."""
    gaps: tuple[str, ...]
    """What stands before, between and after the lines; one more than there are lines."""

    @classmethod
    def split(cls, text: str) -> Self:
        """Split a text."""
        lines: list[str] = []
        gaps = [""]
        for row in text.splitlines(keepends=True):
            line = row.strip()
            if not any(char.isprintable() and not char.isspace() for char in line):
                gaps[-1] += row
                continue
            before, after = row.split(line, 1)
            gaps[-1] += before
            lines.append(line)
            gaps.append(after)
        return cls(tuple(lines), tuple(gaps))

    def filled_with(self, lines: Sequence[str]) -> str:
        """Return the text with its lines replaced by as many translated ones."""
        pairs = zip(self.gaps, (*lines, ""), strict=True)
        return "".join(gap + line for gap, line in pairs)


class BaiduTranslateClient(Translator):
    """Translates texts at the rate that the plan allows; one object per process limits the rate for all tools."""

    max_wait = 8.0
    """Seconds a call may wait for its turn before it is refused; with a request, within a tool's usual limit."""

    def __init__(self, http: OutboundHttp, settings: BaiduTranslateSettings) -> None:
        self._http = http
        self._settings = settings
        # The sandbox has no rate limit; waiting would only make the second of two tools look slow.
        pace = math.inf if settings.in_sandbox else settings.requests_per_second
        self._pacer = Pacer(pace, self.max_wait)
        self._url = settings.base_url
        self._app_id, self._secret_key = settings.app_id or _NO_SECRET, settings.secret_key or _NO_SECRET
        if settings.in_sandbox:
            self._url = f"{settings.sandbox_url}/baidu/api/trans/vip/translate"
            self._app_id = self._secret_key = SecretStr(_SANDBOX_ACCOUNT)

    async def translate(self, text: str, source: str, target: str) -> TranslationResult:
        """Translate a text; see :meth:`Translator.translate`."""
        source, target = BAIDU.source(source), BAIDU.target(target)
        layout = self._checked(text)
        answer = await self._answer({"q": "\n".join(layout.lines), "from": source, "to": target})
        return {
            "from": reported_language(answer, "from", source),
            "to": reported_language(answer, "to", target),
            "text": layout.filled_with(_lines_of(answer, len(layout.lines))),
        }

    def _checked(self, text: str) -> Layout:
        if len(text) > self._settings.max_chars:
            raise too_long(f"{len(text)} characters", f"{self._settings.max_chars} characters")
        layout = Layout.split(text)
        if not layout.lines:
            raise nothing_to_translate()
        size = len("\n".join(layout.lines).encode())
        if size > MAX_TEXT_BYTES:
            raise too_long(f"{size} bytes in UTF-8", f"{MAX_TEXT_BYTES} bytes")
        return layout

    async def _answer(self, question: dict[str, str]) -> Mapping[str, Any]:
        """Send a request, and once more if the rule of Baidu's error code allows a retry."""
        answer = await self._exchange(question)
        error = error_rule(answer)
        if error is not None and error[1].retry_after is not None:
            # For every call, not only this one: the limit belongs to the account.
            self._pacer.hold(error[1].retry_after)
            answer = await self._exchange(question, ahead=True)
            error = error_rule(answer)
        if error is not None:
            raise translation_error(*error)
        return answer

    async def _exchange(self, question: dict[str, str], *, ahead: bool = False) -> Mapping[str, Any]:
        await self._pacer.acquire(ahead=ahead)
        salt = secrets.token_hex(8)
        app_id = self._app_id.get_secret_value()
        signature = sign(app_id, question["q"], salt, self._secret_key.get_secret_value())
        form = question | {"appid": app_id, "salt": salt, "sign": signature}
        reply = await self._http.fetch("POST", self._url, upstream=_UPSTREAM, timeout=self.timeout, data=form)
        return _parse(reply)


def sign(app_id: str, text: str, salt: str, secret_key: str) -> str:
    """Sign a request: MD5 over the UTF-8 bytes of app id, text, salt and key, the text not URL-encoded.

    The rule, with its first test vector, is Baidu's: https://fanyi-api.baidu.com/doc/21.
    """
    return hashlib.md5(f"{app_id}{text}{salt}{secret_key}".encode(), usedforsecurity=False).hexdigest()


def _parse(reply: Reply) -> Mapping[str, Any]:
    status = reply.status
    # Baidu reports its own errors with HTTP 200; these come from something in front of it.
    if status == 429 or status >= 500:
        raise UpstreamUnavailable(f"{_UPSTREAM} is not available just now (HTTP {status})")
    if status != 200:
        raise UpstreamInvalid(f"{_UPSTREAM} sent something that is not an answer of its API (HTTP {status})")
    return JsonReply.parse(reply, _UPSTREAM).body


def _lines_of(answer: Mapping[str, Any], expected: int) -> list[str]:
    results = answer.get("trans_result")
    # One line too few would put every later line into the wrong place of the layout.
    if not isinstance(results, list) or len(results) != expected:
        raise UpstreamInvalid(f"{_UPSTREAM} sent an answer without a translation for every line")
    lines = [result.get("dst") if isinstance(result, dict) else None for result in results]
    texts = [line for line in lines if isinstance(line, str)]
    if len(texts) != expected or not any(text.strip() for text in texts):
        raise UpstreamInvalid(f"{_UPSTREAM} sent a translation that is not text")
    return texts
