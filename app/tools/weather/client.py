"""WeatherAPI's forecast as this service sees it."""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import anyio.to_thread
from pydantic import Field
from pydantic_core import from_json

from app.gazetteer import pinyin
from app.gazetteer.gazetteer import find_place
from app.tools.error_rule import ErrorRule
from app.tools.weather.forecast import Weather, slim
from app.tools.weather.places import MAX_NAME, PlaceQuery, is_chinese, place_query
from toolchat import BaseUrl, Secret, ToolSettings
from toolchat.errors import ProviderAuth, ProviderQuota, UpstreamInvalid, UpstreamTimeout
from toolchat.http.client import OutboundHttp, Reply

__all__ = ["CACHE_SECONDS", "WeatherClient", "WeatherSettings", "error_code", "error_rule"]

_log = logging.getLogger(__name__)

CACHE_SECONDS = 600
"""Ten minutes: the present weather may be that old, and a busy place is asked for six times an hour at most."""
TIMEOUT = 10.0
"""Seconds a look-up may take, a second try included; WeatherAPI mostly answers within one."""
_UPSTREAM = "WeatherAPI"
_MAX_BYTES = 1024 * 1024
"""Longest body that is parsed; 14 days with every hour are 0.3 MB."""
_PLAN_REFUSES_DAYS = 2009
_FREE_DAYS = 3
"""Days that every plan covers."""
_ADVICE = "say that the weather cannot be looked up at the moment"


def _rejected(cause: str) -> ErrorRule:
    message = "the weather service is not set up correctly on this server"
    return ErrorRule(ProviderAuth.code, message, _ADVICE, f"{cause}: check WEATHER_API_KEY")


def _unavailable(message: str, operator: str | None = None, retry_after: float | None = None) -> ErrorRule:
    return ErrorRule("unavailable", message, _ADVICE, operator, retry_after)


_RULES: Mapping[int, ErrorRule] = {
    1002: _rejected("it received no API key"),
    1003: ErrorRule("invalid-place", "the weather service received no place", "give the name of a city"),
    1005: _unavailable("the weather service refused the request", "it refused the URL: check WEATHER_BASE_URL"),
    1006: ErrorRule(
        "no-such-place",
        "the weather service knows no such place",
        "try the English or pinyin name with its country, such as 'Suzhou, Jiangsu, China', or a larger city nearby",
    ),
    2006: _rejected("the API key is invalid"),
    2007: ErrorRule(
        ProviderQuota.code, "the weather service's quota is used up", _ADVICE, "the quota of the month is used up"
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
        return _unavailable("the weather service is receiving too many requests; it may answer in a minute")
    if status >= 500:
        return _unavailable("the weather service failed")
    if code is not None and code in _RULES:
        return _RULES[code]
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


class WeatherSettings(ToolSettings):
    """Settings of WeatherAPI."""

    required: ClassVar[tuple[str, ...]] = ("api_key",)
    has_sandbox: ClassVar[bool] = True

    api_key: Secret | None = Field(None, description="Key of weatherapi.com")
    base_url: BaseUrl = Field("https://api.weatherapi.com/v1", description="Address of WeatherAPI, up to its version")


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    body: Any
    """The parsed JSON; ``None`` if there is none."""

    @property
    def code(self) -> int | None:
        return error_code(self.body)


class WeatherClient:
    """Looks up forecasts; the key travels in a header, never in the URL."""

    def __init__(self, settings: WeatherSettings, http: OutboundHttp, *, timeout: float = TIMEOUT) -> None:
        base = f"{settings.sandbox_url}/weatherapi/v1" if settings.in_sandbox else settings.base_url
        key = settings.api_key.get_secret_value() if settings.api_key and not settings.in_sandbox else "sandbox"
        self._url = f"{base}/forecast.json"
        self._headers = {"key": key}
        self._timeout = timeout
        self._http = http

    async def forecast(self, city: str, days: int) -> Weather:
        """Look up the weather of a place, now and for some days from today.

        A name in Chinese characters is answered in Chinese. ``WeatherAPI``'s internal error is tried once more, and
        a plan that refuses the days once with three.

        Args:
            city: the place's name in any language that WeatherAPI or pinyin can read.
            days: 1 to 14; a plan may deliver fewer.

        Returns:
            What :func:`slim` keeps.

        Raises:
            ToolExecutionError: ``invalid-place``, ``no-such-place``, ``provider-auth``, ``provider-quota`` or
                ``unavailable``.
            UpstreamError: no usable answer, or none in time.
        """
        query = await _query(city)
        try:
            async with asyncio.timeout(self._timeout):
                answer = await self._answer(query, days)
        except TimeoutError:
            raise UpstreamTimeout(f"{_UPSTREAM} did not answer within {self._timeout:g} s") from None
        if rule := error_rule(answer.status, answer.code):
            raise rule.to_error(_UPSTREAM, _log, status=answer.status, error_code=answer.code)
        return slim(answer.body, days)

    async def _answer(self, query: PlaceQuery, days: int) -> _Answer:
        answer = await self._ask(query, days)
        rule = error_rule(answer.status, answer.code)
        if rule is None:
            return answer
        if rule.retry_after is not None:
            return await self._ask(query, days)
        # Fewer days are a better answer than none; the result says how many were requested.
        if rule is _RULES[_PLAN_REFUSES_DAYS] and days > _FREE_DAYS:
            return await self._ask(query, _FREE_DAYS)
        return answer

    async def _ask(self, query: PlaceQuery, days: int) -> _Answer:
        # One hour instead of 24 a day: the hours are 95 % of the body, and none of them is used.
        params = {"q": query.q, "days": str(days), "hour": "12"} | ({"lang": "zh"} if query.chinese else {})
        reply = await self._http.fetch(
            "GET", self._url, upstream=_UPSTREAM, timeout=self._timeout, params=params, headers=self._headers
        )
        return _parsed(reply)


async def _query(city: str) -> PlaceQuery:
    # The first Chinese name outside of the tables imports pypinyin, which would block the event loop.
    name = city[: 4 * MAX_NAME]
    if is_chinese(name) and not pinyin.is_loaded() and find_place(name) is None:
        return await anyio.to_thread.run_sync(place_query, city)
    return place_query(city)


def _parsed(reply: Reply) -> _Answer:
    """Parse the JSON body; an error may have none."""
    if len(reply.body) > _MAX_BYTES:
        raise UpstreamInvalid(f"{_UPSTREAM} sent more than {_MAX_BYTES} bytes")
    try:
        return _Answer(reply.status, from_json(reply.body, allow_inf_nan=False))
    except ValueError:
        if reply.status == 200:
            raise UpstreamInvalid(f"{_UPSTREAM} sent something that is not JSON") from None
        return _Answer(reply.status, None)
