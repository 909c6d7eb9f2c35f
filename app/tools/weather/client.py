"""WeatherAPI's forecast as this service sees it."""

import asyncio
from dataclasses import dataclass
from typing import Any

import anyio.to_thread
from pydantic_core import from_json

from app.errors import UpstreamInvalid, UpstreamTimeout
from app.http import OutboundHttp, Reply
from app.places import pinyin
from app.places.gazetteer import find_place
from app.tools.weather.faults import error_code, fault_of
from app.tools.weather.forecast import slim
from app.tools.weather.place_checks import MAX_NAME
from app.tools.weather.places import PlaceQuery, is_chinese, place_query
from app.tools.weather.results import Weather
from app.tools.weather.settings import WeatherSettings

__all__ = ["WeatherClient"]

_UPSTREAM = "WeatherAPI"
_MAX_BYTES = 1024 * 1024
"""Longest body that is parsed; 14 days with every hour are 0.3 MB."""
_FREE_DAYS = 3
"""Days that every plan covers."""


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    body: Any
    """The parsed JSON; ``None`` where there was none."""

    @property
    def code(self) -> int | None:
        return error_code(self.body)


class WeatherClient:
    """Looks up forecasts; the key travels in a header, never in the URL."""

    def __init__(self, settings: WeatherSettings, http: OutboundHttp) -> None:
        base = f"{settings.sandbox_url}/weatherapi/v1" if settings.in_sandbox else settings.base_url
        key = settings.api_key.get_secret_value() if settings.api_key and not settings.in_sandbox else "sandbox"
        self._url = f"{base}/forecast.json"
        self._headers = {"key": key}
        self._timeout = settings.timeout
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
            ToolExecutionError: ``invalid-place``, ``no-such-place``, ``not-configured`` or ``unavailable``.
            UpstreamError: no usable answer, or none in time.
        """
        query = await _query(city)
        try:
            async with asyncio.timeout(self._timeout):
                answer = await self._answer(query, days)
        except TimeoutError:
            raise UpstreamTimeout(f"{_UPSTREAM} did not answer within {self._timeout:g} s") from None
        if fault := fault_of(answer.status, answer.code):
            raise fault.report(answer.status, answer.code)
        return slim(answer.body, days)

    async def _answer(self, query: PlaceQuery, days: int) -> _Answer:
        answer = await self._ask(query, days)
        fault = fault_of(answer.status, answer.code)
        if fault and fault.remedy == "again":
            return await self._ask(query, days)
        if fault and fault.remedy == "fewer-days" and days > _FREE_DAYS:
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
    # The first Chinese name that is in no table costs the import of pypinyin, which must not hold up the event loop.
    name = city[: 4 * MAX_NAME]
    if is_chinese(name) and not pinyin.is_loaded() and find_place(name) is None:
        return await anyio.to_thread.run_sync(place_query, city)
    return place_query(city)


def _parsed(reply: Reply) -> _Answer:
    """Read the JSON; only a success must have it."""
    if len(reply.body) > _MAX_BYTES:
        raise UpstreamInvalid(f"{_UPSTREAM} sent more than {_MAX_BYTES} bytes")
    try:
        return _Answer(reply.status, from_json(reply.body, allow_inf_nan=False))
    except ValueError:
        if reply.status == 200:
            raise UpstreamInvalid(f"{_UPSTREAM} sent something that is not JSON") from None
        return _Answer(reply.status, None)
