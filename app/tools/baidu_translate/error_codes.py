"""The error codes of Baidu's general translation, and how the tools answer them.

Codes and their meaning are those of https://fanyi-api.baidu.com/doc/21; an error comes with HTTP 200.
"""

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from app.tools.baidu_translate.languages import BAIDU
from app.upstreams import ErrorRule
from toolchat import ProviderAuth, ProviderQuota, ToolExecutionError, UpstreamInvalid

_log = logging.getLogger(__name__)
_UPSTREAM = "Baidu translate"
_SUCCESS = "52000"
_LONGEST_CODE = 8
_LATER = "try again later"
_NO_USE = "do not try again; the operator of this service has to see to it"


def _for_operator(kind: str, message: str, operator: str) -> ErrorRule:
    """An error that only the operator can fix."""
    return ErrorRule(kind, message, _NO_USE, operator)


_RULES = {
    "52001": ErrorRule("unavailable", "the translation took Baidu too long", "try a shorter text", retry_after=0),
    "52002": ErrorRule("unavailable", "Baidu's translation has a failure of its own", _LATER, retry_after=0),
    "52003": _for_operator(
        ProviderAuth.code,
        "Baidu does not know this service's account, or translation is not switched on for it",
        "BAIDU_TRANSLATE_APP_ID is unknown, or general translation is not opened for it",
    ),
    "54000": ErrorRule(
        "invalid-arguments", "Baidu misses a part of the request", "check that q is not empty, and from and to"
    ),
    "54001": _for_operator(
        ProviderAuth.code,
        "Baidu refuses this service's signature",
        "the signature is refused; BAIDU_TRANSLATE_SECRET_KEY does not belong to the APP ID",
    ),
    "54003": ErrorRule("busy", "Baidu's limit of requests per second is reached", _LATER, retry_after=1),
    "54004": _for_operator(
        ProviderQuota.code,
        "this service's allowance of translations is used up",
        "the balance or the month's free characters are used up",
    ),
    "54005": ErrorRule("busy", "too many long texts came in a short time", "try a shorter text", retry_after=3),
    "58000": _for_operator(
        ProviderAuth.code,
        "Baidu does not accept requests from this service's address",
        "the server's IP address is not on the account's list",
    ),
    "58001": ErrorRule(
        "unsupported-language", "Baidu does not translate between these two languages", f"languages: {BAIDU.accepted}"
    ),
    "58002": _for_operator(
        "unavailable",
        "Baidu has closed the translation service for this account",
        "general translation is closed; open it in Baidu's console",
    ),
    "58003": _for_operator(
        "unavailable",
        "Baidu has blocked this service's address for today",
        "the server's IP address is banned for the day: several APP IDs were used from it",
    ),
    "90107": _for_operator(
        ProviderAuth.code,
        "Baidu has not verified this service's account",
        "the account's verification is not passed or has run out",
    ),
    "20003": ErrorRule(
        "refused", "Baidu refuses to translate this text: it sees a safety risk in it", "do not send this text again"
    ),
}


_UNKNOWN = ErrorRule("unavailable", "Baidu did not translate the text", _LATER, "an error code that is not documented")


def error_rule(answer: Mapping[str, Any]) -> tuple[str, ErrorRule] | None:
    """Return the error code of an answer and its rule; ``None`` if it reports no error.

    Raises:
        UpstreamInvalid: the code is not valid.
    """
    code = answer.get("error_code")
    if code is None:
        return None
    text = str(code).strip() if isinstance(code, str | int) else ""
    if not (text.isascii() and text.isdigit() and len(text) <= _LONGEST_CODE):
        raise UpstreamInvalid(f"{_UPSTREAM} reported an error without a usable code")
    return None if text == _SUCCESS else (text, _RULES.get(text, _UNKNOWN))


def translation_error(code: str, rule: ErrorRule) -> ToolExecutionError:
    """Return the error for the model, with Baidu's code in its message."""
    numbered = replace(rule, message=f"{rule.message} (Baidu error {code})")
    return numbered.to_error(_UPSTREAM, _log, error_code=code)
