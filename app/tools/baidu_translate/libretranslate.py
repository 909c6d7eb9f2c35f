"""Client of LibreTranslate, a translation server to run oneself.

Wire format and errors: https://docs.libretranslate.com/api/operations/translate/ and the server's source. An error has
a text instead of a code; a server answers in English unless the request asks for another language.
"""

import logging
from typing import Any

from app.tools.baidu_translate.languages import AUTO, LIBRETRANSLATE
from app.tools.baidu_translate.translator import (
    BaiduTranslateSettings,
    TranslationResult,
    Translator,
    nothing_to_translate,
    reported_language,
    too_long,
)
from app.upstreams import ErrorRule, JsonReply
from toolchat import OutboundHttp, ProviderAuth, UpstreamInvalid

_log = logging.getLogger(__name__)
_UPSTREAM = "LibreTranslate"
_MAX_CHARS = 10_000
"""Longest text that is sent; the server's own limit may be lower."""
_LATER = "try again later"

_KEY = ErrorRule(
    ProviderAuth.code,
    "the translation server does not accept this service's key",
    "do not try again; the operator of this service has to see to it",
    "the key is missing or not valid: check LIBRETRANSLATE_API_KEY",
)
_BUSY = ErrorRule("busy", "the translation server's limit of requests is reached", _LATER)
_FAILED = ErrorRule("unavailable", "the translation server failed", _LATER)
_UNKNOWN = ErrorRule(
    "unavailable", "the translation server did not translate the text", _LATER, "it refused: check LIBRETRANSLATE_URL"
)
_LANGUAGE = ErrorRule(
    "unsupported-language",
    "the translation server has no model for these two languages",
    "translate into English first, or choose another language",
)
_REFUSALS = {
    "API key": _KEY,
    "exceeds": ErrorRule("too-long", "the text is longer than the server accepts", "translate it in parts"),
    "not supported": _LANGUAGE,
    "not available": _LANGUAGE,
}
"""The rules of HTTP 400, by what the server's text contains."""


class LibreTranslateClient(Translator):
    """Translates texts at a server of one's own."""

    def __init__(self, http: OutboundHttp, settings: BaiduTranslateSettings) -> None:
        self._http = http
        self._url = f"{settings.libretranslate_url}/translate"
        self._key = settings.libretranslate_api_key

    async def translate(self, text: str, source: str, target: str) -> TranslationResult:
        """Translate a text; see :meth:`Translator.translate`."""
        source, target = LIBRETRANSLATE.source(source), LIBRETRANSLATE.target(target)
        if not text.strip():
            raise nothing_to_translate()
        if len(text) > _MAX_CHARS:
            raise too_long(f"{len(text)} characters", f"{_MAX_CHARS} characters")
        key = {"api_key": self._key.get_secret_value()} if self._key else {}
        form = {"q": text, "source": source, "target": target, "format": "text"} | key
        raw = await self._http.fetch("POST", self._url, upstream=_UPSTREAM, timeout=self.timeout, data=form)
        reply = JsonReply.parse(raw, _UPSTREAM)
        if rule := _error_rule(reply):
            raise rule.to_error(_UPSTREAM, _log, status=reply.status)
        translated = reply.body.get("translatedText")
        if not isinstance(translated, str) or not translated.strip():
            raise UpstreamInvalid(f"{_UPSTREAM} sent a translation that is not text")
        detected: Any = reply.body.get("detectedLanguage")
        if source == AUTO and isinstance(detected, dict):
            source = reported_language(detected, "language", source)
        return {"from": source, "to": target, "text": translated}


def _error_rule(reply: JsonReply) -> ErrorRule | None:
    """Return the rule of an answer; ``None`` if it is not an error."""
    if reply.status == 200:
        return _UNKNOWN if "error" in reply.body else None
    if reply.status >= 500:
        return _FAILED
    text = str(reply.body.get("error"))
    by_text = (rule for part, rule in _REFUSALS.items() if reply.status == 400 and part in text)
    return next(by_text, {403: _KEY, 429: _BUSY}.get(reply.status, _UNKNOWN))
