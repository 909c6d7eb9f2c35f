"""What becomes of each error code of Baidu's general translation.

Codes and their meaning are those of https://fanyi-api.baidu.com/doc/21; an error comes with HTTP 200.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from app.tools.baidu_translate.languages import accepted
from toolchat.errors import UpstreamInvalid
from toolchat.tool_calling.errors import ToolExecutionError

__all__ = ["ErrorRule", "reaction_to"]

_log = logging.getLogger(__name__)
_SUCCESS = "52000"
_LONGEST_CODE = 8


@dataclass(frozen=True, slots=True)
class ErrorRule:
    """How the service answers an error code."""

    code: str
    kind: str
    message: str
    hint: str | None = None
    retry_after: float | None = None
    """Seconds to keep quiet before the one retry; ``None`` where a retry cannot help."""
    operator: str | None = None
    """What whoever runs the service must see to; logged as a warning, never told to the model."""

    def error(self) -> ToolExecutionError:
        """The error for the model; a fault of the operator is logged."""
        if self.operator:
            _log.warning("Baidu translate: %s", self.operator, extra={"error_code": self.code})
        return ToolExecutionError(f"{self.message} (Baidu error {self.code})", kind=self.kind, hint=self.hint)


_LATER = "try again later"
_NO_USE = "do not try again; the operator of this service has to see to it"

_REACTIONS = {
    reaction.code: reaction
    for reaction in (
        ErrorRule("52001", "unavailable", "the translation took Baidu too long", "try a shorter text", 0),
        ErrorRule("52002", "unavailable", "Baidu's translation has a failure of its own", _LATER, 0),
        ErrorRule(
            "52003",
            "not-configured",
            "Baidu does not know this service's account, or translation is not switched on for it",
            _NO_USE,
            operator="BAIDU_TRANSLATE_APP_ID is unknown, or general translation is not opened for it",
        ),
        ErrorRule(
            "54000",
            "invalid-arguments",
            "Baidu misses a part of the request",
            "check that q is not empty and that from and to are languages",
        ),
        ErrorRule(
            "54001",
            "not-configured",
            "Baidu refuses this service's signature",
            _NO_USE,
            operator="the signature is refused; BAIDU_TRANSLATE_SECRET_KEY does not belong to the APP ID",
        ),
        ErrorRule("54003", "busy", "Baidu's limit of requests per second is reached", _LATER, 1),
        ErrorRule(
            "54004",
            "unavailable",
            "this service's allowance of translations is used up",
            _NO_USE,
            operator="the balance or the month's free characters are used up",
        ),
        ErrorRule("54005", "busy", "too many long texts came in a short time", "try a shorter text", 3),
        ErrorRule(
            "58000",
            "not-configured",
            "Baidu does not accept requests from this service's address",
            _NO_USE,
            operator="the server's IP address is not on the account's list",
        ),
        ErrorRule(
            "58001",
            "unsupported-language",
            "Baidu does not translate between these two languages",
            f"languages: {accepted()}",
        ),
        ErrorRule(
            "58002",
            "unavailable",
            "Baidu has closed the translation service for this account",
            _NO_USE,
            operator="general translation is closed; open it in Baidu's console",
        ),
        ErrorRule(
            "58003",
            "unavailable",
            "Baidu has blocked this service's address for today",
            _NO_USE,
            operator="the server's IP address is banned for the day: several APP IDs were used from it",
        ),
        ErrorRule(
            "90107",
            "not-configured",
            "Baidu has not verified this service's account",
            _NO_USE,
            operator="the account's verification is not passed or has run out",
        ),
        ErrorRule(
            "20003",
            "refused",
            "Baidu refuses to translate this text: it sees a safety risk in it",
            "do not send this text again",
        ),
    )
}


def reaction_to(answer: Mapping[str, Any]) -> ErrorRule | None:
    """Find the reaction to an answer of Baidu; ``None`` when it reports no error.

    Raises:
        UpstreamInvalid: the code is no code.
    """
    code = answer.get("error_code")
    if code is None:
        return None
    text = str(code).strip() if isinstance(code, str | int) else ""
    if not (text.isascii() and text.isdigit() and len(text) <= _LONGEST_CODE):
        raise UpstreamInvalid("Baidu translate reported an error without a usable code")
    return None if text == _SUCCESS else _REACTIONS.get(text) or _unknown(text)


def _unknown(code: str) -> ErrorRule:
    return ErrorRule(
        code, "unavailable", "Baidu did not translate the text", _LATER, operator="an error code that is not documented"
    )
