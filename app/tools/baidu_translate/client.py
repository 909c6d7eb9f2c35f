"""Client of Baidu's general translation API: settings, layout of texts, signature and answers."""

import hashlib
import math
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field, SecretStr
from pydantic_core import from_json
from typing_extensions import TypedDict

from app.tools.baidu_translate.error_codes import error_rule, translation_error
from app.tools.baidu_translate.languages import source_code, target_code
from app.tools.baidu_translate.rate_limiter import Pacer
from toolchat import (
    BaseUrl,
    OutboundHttp,
    Reply,
    Secret,
    ToolArgumentsError,
    ToolExecutionError,
    ToolSettings,
    UpstreamInvalid,
    UpstreamUnavailable,
)

__all__ = [
    "CACHE_SECONDS",
    "BaiduTranslateClient",
    "BaiduTranslateSettings",
    "Layout",
    "Translation",
    "TranslationResult",
    "sign",
]

CACHE_SECONDS = 3600
"""An hour: a translation does not age, but what users had translated should not lie in memory for long."""
TIMEOUT = 10.0
"""Seconds one request may take; half of a tool's usual limit, so that a second try still fits."""
MAX_WAIT = 8.0
"""Seconds a call may wait for its turn before it is refused; together with a request within a tool's usual limit."""
_UPSTREAM = "Baidu translate"
_SANDBOX_ACCOUNT = "sandbox"
_STANDARD_CHARS = 1000
_MAX_TEXT_BYTES = 6000
"""Baidu's bound for the text of one request, in UTF-8 (https://fanyi-api.baidu.com/doc/21)."""


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


class BaiduTranslateSettings(ToolSettings):
    """Settings of Baidu's general translation and the limits of its plan."""

    required: ClassVar[tuple[str, ...]] = ("app_id", "secret_key")
    has_sandbox: ClassVar[bool] = True

    app_id: Secret | None = Field(None, description="APP ID of the Baidu translate account")
    secret_key: Secret | None = Field(None, description="Secret key of the Baidu translate account")
    base_url: BaseUrl = Field(
        "https://fanyi-api.baidu.com/api/trans/vip/translate", description="Address of the general translation API"
    )
    requests_per_second: float = Field(
        1,
        gt=0,
        le=1000,
        description="Requests per second that the plan allows: Standard 1, Advanced 10, Premium 100; "
        "above 1, texts may have 6000 characters instead of 1000",
    )

    @property
    def max_chars(self) -> int:
        """Longest text in characters; the plan with one request per second, Standard, also takes the shortest texts."""
        return _STANDARD_CHARS if self.requests_per_second <= 1 else _MAX_TEXT_BYTES


TranslationResult = TypedDict(
    "TranslationResult",
    {
        "from": Annotated[str, Field(title="原文语言 / source language", description="Baidu's code")],
        "to": Annotated[str, Field(title="译文语言 / target language", description="Baidu's code")],
        "text": Annotated[str, Field(title="译文 / translation")],
    },
)
"""The translation for the model, under Baidu's own names; ``from`` is a keyword, so it cannot be a class."""


@dataclass(frozen=True, slots=True)
class Translation:
    """A translated text, with the blanks and line breaks of the original."""

    source: str
    """Baidu's code of the original's language, as detected where it was left to detection."""
    target: str
    text: str

    def as_result(self) -> TranslationResult:
        """Return the translation as the tool's result."""
        return {"from": self.source, "to": self.target, "text": self.text}


class BaiduTranslateClient:
    """Translates texts at the rate that the plan allows; one object per process limits the rate for all tools."""

    def __init__(
        self,
        http: OutboundHttp,
        settings: BaiduTranslateSettings,
        *,
        timeout: float = TIMEOUT,
        max_wait: float = MAX_WAIT,
    ) -> None:
        self._http = http
        self._settings = settings
        # The sandbox has no rate limit; waiting would only make the second of two tools look slow.
        pace = math.inf if settings.in_sandbox else settings.requests_per_second
        self._pacer = Pacer(pace, max_wait)
        self._timeout = timeout
        self._url = settings.base_url
        self._app_id, self._secret_key = _plain(settings.app_id), _plain(settings.secret_key)
        if settings.in_sandbox:
            self._url = f"{settings.sandbox_url}/baidu/api/trans/vip/translate"
            self._app_id = self._secret_key = _SANDBOX_ACCOUNT

    async def translate(self, text: str, source: str, target: str) -> Translation:
        """Translate a text.

        Args:
            text: what to translate; may have several lines.
            source: its language, by any name or code; ``auto`` or nothing lets Baidu detect it.
            target: the language to translate into, by any name or code.

        Raises:
            ToolExecutionError: the text, a language or the account is not accepted, or too many calls wait.
            UpstreamError: Baidu cannot be reached, or its answer is not valid.
        """
        source, target = source_code(source), target_code(target)
        layout = self._checked(text)
        answer = await self._answer({"q": "\n".join(layout.lines), "from": source, "to": target})
        translated = layout.filled_with(_lines_of(answer, len(layout.lines)))
        return Translation(_language(answer, "from", source), _language(answer, "to", target), translated)

    def _checked(self, text: str) -> Layout:
        if len(text) > self._settings.max_chars:
            raise _too_long(f"{len(text)} characters", f"{self._settings.max_chars} characters")
        layout = Layout.split(text)
        if not layout.lines:
            raise ToolArgumentsError("q: there is nothing to translate", [{"field": "q", "problem": "is blank"}])
        size = len("\n".join(layout.lines).encode())
        if size > _MAX_TEXT_BYTES:
            raise _too_long(f"{size} bytes in UTF-8", f"{_MAX_TEXT_BYTES} bytes")
        return layout

    async def _answer(self, question: dict[str, str]) -> dict[str, Any]:
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

    async def _exchange(self, question: dict[str, str], *, ahead: bool = False) -> dict[str, Any]:
        await self._pacer.acquire(ahead=ahead)
        salt = secrets.token_hex(8)
        signature = sign(self._app_id, question["q"], salt, self._secret_key)
        form = question | {"appid": self._app_id, "salt": salt, "sign": signature}
        reply = await self._http.fetch("POST", self._url, upstream=_UPSTREAM, timeout=self._timeout, data=form)
        return _parse(reply)


def sign(app_id: str, text: str, salt: str, secret_key: str) -> str:
    """Sign a request: MD5 over the UTF-8 bytes of app id, text, salt and key, the text not URL-encoded.

    The rule, with its first test vector, is Baidu's: https://fanyi-api.baidu.com/doc/21.
    """
    return hashlib.md5(f"{app_id}{text}{salt}{secret_key}".encode(), usedforsecurity=False).hexdigest()


def _plain(secret: SecretStr | None) -> str:
    return secret.get_secret_value() if secret else ""


def _too_long(length: str, limit: str) -> ToolExecutionError:
    return ToolExecutionError(
        f"the text has {length}; at most {limit} can be translated at once",
        kind="too-long",
        hint="translate it in parts, one call after the other",
    )


def _parse(reply: Reply) -> dict[str, Any]:
    status = reply.status
    # Baidu reports its own errors with HTTP 200; these come from something in front of it.
    if status == 429 or status >= 500:
        raise UpstreamUnavailable(f"{_UPSTREAM} is not available just now (HTTP {status})")
    try:
        answer = from_json(reply.body)
    except ValueError:
        answer = None
    if status != 200 or not isinstance(answer, dict):
        raise UpstreamInvalid(f"{_UPSTREAM} sent something that is not an answer of its API (HTTP {status})")
    return answer


def _lines_of(answer: dict[str, Any], expected: int) -> list[str]:
    results = answer.get("trans_result")
    # One line too few would put every later line into the wrong place of the layout.
    if not isinstance(results, list) or len(results) != expected:
        raise UpstreamInvalid(f"{_UPSTREAM} sent an answer without a translation for every line")
    lines = [result.get("dst") if isinstance(result, dict) else None for result in results]
    texts = [line for line in lines if isinstance(line, str)]
    if len(texts) != expected or not any(text.strip() for text in texts):
        raise UpstreamInvalid(f"{_UPSTREAM} sent a translation that is not text")
    return texts


def _language(answer: dict[str, Any], key: str, asked: str) -> str:
    language = answer.get(key)
    return language if isinstance(language, str) and 0 < len(language) <= 16 else asked
