"""The current time in any time zone."""

from app.tools.time.tools import GetCurrentTimeByTimeZoneIdService, TimeTools
from toolchat import ToolModule

module = ToolModule(
    title="Time",
    path="/time",
    default_query="请告诉我现在北京时间几点了",
    functions=(GetCurrentTimeByTimeZoneIdService,),
    methods=(TimeTools,),
    interchangeable=True,
    examples={
        "北京": "请告诉我现在北京时间几点了",
        "两个城市": "纽约和东京现在分别是几点？",
        "时区": "UTC+8 现在几点？",
        "English": "What time is it in London?",
        "Two cities": "What time is it in New York and in Tokyo?",
        "Offset": "What time is it at UTC+8?",
    },
)
