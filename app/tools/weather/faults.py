"""WeatherAPI's error codes, and what each means to the model and to the operator.

Source: https://www.weatherapi.com/docs/error-codes/
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from app.tool_calling.errors import ToolExecutionError

__all__ = ["Fault", "error_code", "fault_of"]

_log = logging.getLogger(__name__)

_ADVICE = "say that the weather cannot be looked up at the moment"


@dataclass(frozen=True, slots=True)
class Fault:
    """One reaction."""

    kind: str
    message: str
    hint: str = _ADVICE
    operator: str = ""
    """What the operator reads in the log, where it is theirs to mend: no key, no place, no body."""
    remedy: Literal["none", "again", "fewer-days"] = "none"
    """What may be tried once before giving up."""

    def report(self, status: int, code: int | None) -> ToolExecutionError:
        """Tell the operator, and put it into words for the model."""
        if self.operator:
            _log.warning("WeatherAPI: %s", self.operator, extra={"status": status, "error_code": code})
        return ToolExecutionError(self.message, kind=self.kind, hint=self.hint)


def _rejected(cause: str) -> Fault:
    message = "the weather service is not set up correctly on this server"
    return Fault("not-configured", message, operator=f"{cause}: check WEATHER_API_KEY")


def _unavailable(message: str, operator: str = "", remedy: Literal["none", "again", "fewer-days"] = "none") -> Fault:
    return Fault("unavailable", message, operator=operator, remedy=remedy)


_BY_CODE: Mapping[int, Fault] = {
    1002: _rejected("it received no API key"),
    1003: Fault("invalid-place", "the weather service received no place", "give the name of a city"),
    1005: _unavailable("the weather service refused the request", "it refused the URL: check WEATHER_BASE_URL"),
    1006: Fault(
        "no-such-place",
        "the weather service knows no such place",
        "try the English or pinyin name with its country, such as 'Suzhou, Jiangsu, China', or a larger city nearby",
    ),
    2006: _rejected("the API key is invalid"),
    2007: _unavailable("the weather service's quota is used up", "the quota of the month is used up"),
    2008: _rejected("the API key has been disabled"),
    2009: _unavailable(
        "the weather service's plan does not cover this request", "the plan does not cover forecasts", "fewer-days"
    ),
    9000: _unavailable("the weather service refused the request"),
    9001: _unavailable("the weather service refused the request"),
    9999: _unavailable("the weather service failed", remedy="again"),
}


def fault_of(status: int, code: int | None) -> Fault | None:
    """Pick the reaction to an answer; ``None`` when it is no error.

    Being throttled (429) and the upstream's own failures (5xx) go before any code; a code counts whatever the status.
    """
    if status == 429:
        return _unavailable("the weather service is receiving too many requests; it may answer in a minute")
    if status >= 500:
        return _unavailable("the weather service failed")
    if code is not None and code in _BY_CODE:
        return _BY_CODE[code]
    if status != 200 or code is not None:
        return _unavailable("the weather service refused the request", "it answered with an unknown error")
    return None


def error_code(body: Any) -> int | None:
    """The ``error.code`` of an answer; 0 for an error without a usable code, ``None`` without an error."""
    error = body.get("error") if isinstance(body, dict) else None
    if error is None:
        return None
    code = error.get("code") if isinstance(error, dict) else None
    if isinstance(code, str) and code.isascii() and code.isdigit() and len(code) < 6:
        return int(code)
    return code if isinstance(code, int) and not isinstance(code, bool) else 0
