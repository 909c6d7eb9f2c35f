"""What the fields of results are called, and their units."""

import re
from functools import cache

from app.chat_models.offline.vocabulary import words_of
from app.languages import language_of

__all__ = ["label", "language_name", "measured"]

_LABELS = """
temp_c temperature_c temp temperature temp_f: 温度; temperature
feelslike_c feels_like feelslike_f: 体感; feels like
maxtemp_c max_temp_c temp_max high maxtemp_f: 最高; high
mintemp_c min_temp_c temp_min low mintemp_f: 最低; low
avgtemp_c avgtemp_f: 平均; average
humidity avghumidity avg_humidity: 湿度; humidity
chance_of_rain daily_chance_of_rain: 降雨概率; chance of rain
chance_of_snow daily_chance_of_snow: 降雪概率; chance of snow
wind_kph wind_speed wind: 风速; wind
maxwind_kph max_wind_kph: 最大风速; wind up to
wind_dir wind_direction: 风向; wind direction
precip_mm totalprecip_mm precipitation: 降水; precipitation
uv uv_index: 紫外线指数; UV index
sunrise: 日出; sunrise
sunset: 日落; sunset
condition text: 天气; conditions
current now: 当前; now
local_time localtime: 当地时间; local time
place location: 地点; place
region: 地区; region
country: 国家; country
city: 城市; city
name: 名称; name
days_requested: 请求的天数; days asked for
days_delivered: 实得的天数; days delivered
date: 日期; date
time: 时间; time
weekday: 星期; weekday
time_zone timezone: 时区; time zone
utc_offset: 与 UTC 的差; UTC offset
status state: 状态; status
price: 价格; price
amount: 金额; amount
total: 合计; total
count: 数量; count
order_id orderId: 订单号; order
id: 编号; id
title: 标题; title
description: 说明; description
message: 信息; message
result: 结果; result
value: 值; value
url link: 链接; link
email: 邮箱; email
phone: 电话; phone
address: 地址; address
"""
_UNITS = (
    (re.compile(r"_c$"), " °C"),
    (re.compile(r"_f$"), " °F"),
    (re.compile(r"_kph$"), " km/h"),
    (re.compile(r"_mph$"), " mph"),
    (re.compile(r"_mm$"), " mm"),
    (re.compile(r"_km$"), " km"),
    (re.compile(r"_(?:pct|percent)$|humidity$|^(?:daily_)?chance_of_"), "%"),
)


def label(key: str, chinese: bool) -> str:
    """What a field is called; its own name in words when the table does not know it."""
    known = _labels().get(key) or _labels().get(words_of(key).replace(" ", "_"))
    return known[0 if chinese else 1] if known else words_of(key[:60])


def measured(key: str, value: str, chinese: bool) -> str:
    """A field with its name and unit, such as ``温度 8 °C``."""
    unit = next((unit for suffix, unit in _UNITS if suffix.search(key)), "") if value[-1:].isdigit() else ""
    name = label(key, chinese)
    return f"{name} {value}{unit}" if name else f"{value}{unit}"


def language_name(code: str, chinese: bool) -> str:
    """A language's name by its code; the code itself when the table does not know it."""
    language = language_of(code)
    if language is None:
        return code[:40]
    return language.chinese if chinese else language.english


@cache
def _labels() -> dict[str, tuple[str, str]]:
    rows = (line.partition(": ") for line in _LABELS.strip().splitlines())
    return {key: (names.split("; ")[0], names.split("; ")[1]) for keys, _, names in rows for key in keys.split()}
