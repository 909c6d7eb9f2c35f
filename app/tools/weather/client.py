"""The client of a weather service: its settings, and what every provider of forecasts does."""

import asyncio
from collections.abc import Mapping
from typing import ClassVar, Literal

import anyio.to_thread
from pydantic import Field

from app.places import pinyin
from app.places.gazetteer import find_place
from app.tools.weather.forecast import Weather
from app.tools.weather.places import MAX_NAME, PlaceQuery, is_chinese, place_query
from app.upstreams import ErrorRule, JsonReply
from toolchat import BaseUrl, OutboundHttp, Secret, ToolSettings, UpstreamTimeout

CACHE_SECONDS = 600
"""Ten minutes: the present weather may be that old, and a busy place is asked for six times an hour at most."""

ADVICE = "say that the weather cannot be looked up at the moment"
BUSY = ErrorRule("unavailable", "the weather service is receiving too many requests; it may answer in a minute", ADVICE)
FAILED = ErrorRule("unavailable", "the weather service failed", ADVICE)
NO_SUCH_PLACE = ErrorRule(
    "no-such-place",
    "the weather service knows no such place",
    "try the English or pinyin name with its country, such as 'Suzhou, Jiangsu, China', or a larger city nearby",
)


class WeatherSettings(ToolSettings):
    """Settings of the weather service."""

    has_sandbox: ClassVar[bool] = True
    alternative: ClassVar[str] = "or WEATHER_PROVIDER=open_meteo, which needs no key (free for non-commercial use)"

    provider: Literal["", "weatherapi", "open_meteo"] = Field(
        "",
        description="weatherapi, or open_meteo: needs no key, and is free for non-commercial use only (CC BY 4.0). "
        "Default: weatherapi with its key, else open_meteo",
    )
    api_key: Secret | None = Field(None, description="Key of weatherapi.com")
    base_url: BaseUrl | None = Field(
        None,
        description="Address of the provider's API, up to its version; "
        "default https://api.weatherapi.com/v1 or https://api.open-meteo.com/v1",
    )
    geocoding_url: BaseUrl = Field(
        "https://geocoding-api.open-meteo.com/v1", description="Address of Open-Meteo's geocoding, up to its version"
    )

    def required_fields(self) -> tuple[str, ...]:
        """Return the key, if the provider needs one."""
        return ("api_key",) if self.provider == "weatherapi" else ()

    @property
    def uses_open_meteo(self) -> bool:
        """Whether forecasts come from Open-Meteo."""
        without_key = not self.provider and self.api_key is None
        return not self.in_sandbox and (self.provider == "open_meteo" or without_key)


class WeatherClient:
    """Looks up forecasts."""

    upstream: ClassVar[str]
    """The provider's name in errors."""
    timeout = 10.0
    """Seconds a look-up may take, a second request included; the services mostly answer within one."""

    def __init__(self, http: OutboundHttp) -> None:
        self._http = http

    async def forecast(self, city: str, days: int) -> Weather:
        """Look up the weather of a place, now and for some days from today.

        A name in Chinese characters is answered in Chinese.

        Args:
            city: the place's name in any language that the provider or pinyin can read.
            days: 1 to 14; the provider may deliver fewer.

        Raises:
            ToolExecutionError: ``invalid-place``, ``no-such-place``, ``provider-auth``, ``provider-quota`` or
                ``unavailable``.
            UpstreamError: no usable answer, or none in time.
        """
        query = await _query(city)
        try:
            async with asyncio.timeout(self.timeout):
                return await self._look_up(query, days)
        except TimeoutError:
            raise UpstreamTimeout(f"{self.upstream} did not answer within {self.timeout:g} s") from None

    async def _look_up(self, query: PlaceQuery, days: int) -> Weather:
        raise NotImplementedError

    async def _get(self, url: str, params: Mapping[str, str], headers: Mapping[str, str] | None = None) -> JsonReply:
        reply = await self._http.fetch(
            "GET", url, upstream=self.upstream, timeout=self.timeout, params=dict(params), headers=headers
        )
        return JsonReply.parse(reply, self.upstream)


async def _query(city: str) -> PlaceQuery:
    # The first Chinese name outside of the tables imports pypinyin, which would block the event loop.
    name = city[: 4 * MAX_NAME]
    if is_chinese(name) and not pinyin.is_loaded() and find_place(name) is None:
        return await anyio.to_thread.run_sync(place_query, city)
    return place_query(city)
