"""What the weather tool answers, field by field, with what each is called in Chinese and in English.

A figure that WeatherAPI does not tell is left out, so hardly any field is certain to be there.
"""

from typing import Annotated, NotRequired

from pydantic import Field
from typing_extensions import TypedDict  # pydantic reads the one of typing only from Python 3.12 on

__all__ = ["Current", "Day", "FoundPlace", "Weather"]

_Text = Annotated[str, Field(title="天气 / conditions")]
_Humidity = Annotated[float, Field(title="湿度 / humidity", description="per cent")]
_Precipitation = Annotated[float, Field(title="降水 / precipitation", description="mm")]
_Uv = Annotated[float, Field(title="紫外线指数 / UV index")]


class FoundPlace(TypedDict, total=False):
    """The place that WeatherAPI found, which may be another than the one that was meant."""

    name: Annotated[str, Field(title="名称 / name")]
    region: Annotated[str, Field(title="地区 / region")]
    country: Annotated[str, Field(title="国家 / country")]
    local_time: Annotated[str, Field(title="当地时间 / local time", description="yyyy-MM-dd HH:mm")]


class Current(TypedDict, total=False):
    """The present."""

    text: _Text
    temp_c: Annotated[float, Field(title="温度 / temperature", description="degrees Celsius")]
    feelslike_c: Annotated[float, Field(title="体感 / feels like", description="degrees Celsius")]
    humidity: _Humidity
    wind_kph: Annotated[float, Field(title="风速 / wind", description="km/h")]
    wind_dir: Annotated[str, Field(title="风向 / wind direction", description="one of 16 points, such as NNE")]
    precip_mm: _Precipitation
    uv: _Uv


class Day(TypedDict, total=False):
    """One day of the forecast."""

    date: Annotated[str, Field(title="日期 / date", description="yyyy-MM-dd")]
    text: _Text
    maxtemp_c: Annotated[float, Field(title="最高 / high", description="degrees Celsius")]
    mintemp_c: Annotated[float, Field(title="最低 / low", description="degrees Celsius")]
    chance_of_rain: Annotated[float, Field(title="降雨概率 / chance of rain", description="per cent")]
    chance_of_snow: Annotated[float, Field(title="降雪概率 / chance of snow", description="per cent")]
    precip_mm: _Precipitation
    maxwind_kph: Annotated[float, Field(title="最大风速 / wind up to", description="km/h")]
    humidity: _Humidity
    uv: _Uv
    sunrise: Annotated[str, Field(title="日出 / sunrise")]
    sunset: Annotated[str, Field(title="日落 / sunset")]


class Weather(TypedDict):
    """The answer of the tool."""

    place: Annotated[FoundPlace, Field(title="地点 / place")]
    current: NotRequired[Annotated[Current, Field(title="当前 / now")]]
    days: Annotated[list[Day], Field(title="预报 / forecast", description="today first")]
    days_requested: NotRequired[Annotated[int, Field(title="请求的天数 / days asked for")]]
    days_delivered: NotRequired[Annotated[int, Field(title="实得的天数 / days delivered")]]
