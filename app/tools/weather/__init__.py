"""The weather of any place, now and for up to 14 days, from WeatherAPI or Open-Meteo."""

from app.tools.weather.client import WeatherClient, WeatherSettings
from app.tools.weather.tools import WeatherService, WeatherTools
from app.tools.weather.weatherapi import WeatherApiClient
from toolchat import Components, OutboundHttp, ToolModule


def create_client(settings: WeatherSettings, http: OutboundHttp) -> WeatherClient:
    """Create the provider's client; the sandbox plays WeatherAPI."""
    if settings.uses_open_meteo:
        from app.tools.weather.open_meteo import OpenMeteoClient

        return OpenMeteoClient(settings, http)
    return WeatherApiClient(settings, http)


async def check_upstream(components: Components) -> str:
    """Request the forecast of a place that every provider certainly knows."""
    weather = await (await components.get(WeatherClient)).forecast("London", 1)
    return f"the forecast of {weather['place']['name']}"


module = ToolModule(
    path="/weather",
    title="Weather",
    default_query="请告诉我北京1天以后的天气",
    settings=WeatherSettings,
    provides=(create_client,),
    functions=(WeatherService,),
    methods=(WeatherTools,),
    interchangeable=True,
    check=check_upstream,
    examples={
        "北京": "请告诉我北京1天以后的天气",
        "三天": "苏州和宿州未来三天哪里更热？",
        "穿衣": "明天去哈尔滨出差，要带厚外套吗？",
        "国外": "这个周末东京会下雨吗？",
        "English": "What is the weather in Paris tomorrow?",
        "Two places": "Which is warmer over the next three days, Oslo or Rome?",
        "Clothes": "Do I need a coat in Harbin tomorrow?",
    },
)
