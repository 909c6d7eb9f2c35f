"""WeatherAPI's forecast as this service sees it."""

import logging
from collections.abc import Mapping
from typing import Any

from pydantic import SecretStr

from app.tools.weather.client import ADVICE, BUSY, FAILED, NO_SUCH_PLACE, WeatherClient, WeatherSettings
from app.tools.weather.forecast import Weather, slim
from app.tools.weather.places import PlaceQuery
from app.upstreams import ErrorRule, JsonReply
from toolchat import OutboundHttp, ProviderAuth, ProviderQuota

_log = logging.getLogger(__name__)

_BASE_URL = "https://api.weatherapi.com/v1"
_PLAN_REFUSES_DAYS = 2009
_FREE_DAYS = 3
"""Days that every plan covers."""


def _rejected(cause: str) -> ErrorRule:
    message = "the weather service is not set up correctly on this server"
    return ErrorRule(ProviderAuth.code, message, ADVICE, f"{cause}: check WEATHER_API_KEY")


def _unavailable(message: str, operator: str | None = None, retry_after: float | None = None) -> ErrorRule:
    return ErrorRule("unavailable", message, ADVICE, operator, retry_after)


_RULES: Mapping[int, ErrorRule] = {
    1002: _rejected("it received no API key"),
    1003: ErrorRule("invalid-place", "the weather service received no place", "give the name of a city"),
    1005: _unavailable("the weather service refused the request", "it refused the URL: check WEATHER_BASE_URL"),
    1006: NO_SUCH_PLACE,
    2006: _rejected("the API key is invalid"),
    2007: ErrorRule(
        ProviderQuota.code, "the weather service's quota is used up", ADVICE, "the quota of the month is used up"
    ),
    2008: _rejected("the API key has been disabled"),
    2009: _unavailable("the weather service's plan does not cover this request", "the plan does not cover forecasts"),
    9000: _unavailable("the weather service refused the request"),
    9001: _unavailable("the weather service refused the request"),
    9999: _unavailable("the weather service failed", retry_after=0),
}


def error_rule(status: int, code: int | None) -> ErrorRule | None:
    """Return the rule of an answer; ``None`` if it is not an error.

    A limit (429) or a failure of the upstream (5xx) wins over any code; a code counts whatever the status.
    """
    if status == 429:
        return BUSY
    if status >= 500:
        return FAILED
    if code is not None and code in _RULES:
        return _RULES[code]
    if status != 200 or code is not None:
        return _unavailable("the weather service refused the request", "it answered with an unknown error")
    return None


def error_code(body: Mapping[str, Any]) -> int | None:
    """The ``error.code`` of an answer; 0 for an error without a usable code, ``None`` without an error."""
    error = body.get("error")
    if error is None:
        return None
    code = error.get("code") if isinstance(error, dict) else None
    if isinstance(code, str) and code.isascii() and code.isdigit() and len(code) < 6:
        return int(code)
    return code if isinstance(code, int) and not isinstance(code, bool) else 0


class WeatherApiClient(WeatherClient):
    """Looks up forecasts at WeatherAPI; the key travels in a header, never in the URL.

    ``WeatherAPI``'s internal error is tried once more, and a plan that refuses the days once with three.
    """

    upstream = "WeatherAPI"

    def __init__(self, settings: WeatherSettings, http: OutboundHttp) -> None:
        super().__init__(http)
        sandbox = f"{settings.sandbox_url}/weatherapi/v1" if settings.in_sandbox else None
        self._key = settings.api_key if settings.api_key and not sandbox else SecretStr("sandbox")
        self._url = f"{sandbox or settings.base_url or _BASE_URL}/forecast.json"

    async def _look_up(self, query: PlaceQuery, days: int) -> Weather:
        answer = await self._ask(query, days)
        rule = error_rule(answer.status, error_code(answer.body))
        if rule and rule.retry_after is not None:
            answer = await self._ask(query, days)
        # Fewer days are a better answer than none; the result says how many were requested.
        elif rule is _RULES[_PLAN_REFUSES_DAYS] and days > _FREE_DAYS:
            answer = await self._ask(query, _FREE_DAYS)
        code = error_code(answer.body)
        if rule := error_rule(answer.status, code):
            raise rule.to_error(self.upstream, _log, status=answer.status, error_code=code)
        return slim(answer.body, days)

    async def _ask(self, query: PlaceQuery, days: int) -> JsonReply:
        # One hour instead of 24 a day: the hours are 95 % of the body, and none of them is used.
        params = {"q": query.q, "days": str(days), "hour": "12"} | ({"lang": "zh"} if query.chinese else {})
        return await self._get(self._url, params, {"key": self._key.get_secret_value()})
