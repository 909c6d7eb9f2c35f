"""Words that look like places in a sentence, and are none."""

__all__ = ["NOT_NAMES", "NOT_PLACES"]

# Words that hold a place's name and mean something else: in a sentence they are passed over.
NOT_PLACES = """
三明治 大理石 大同小异 印度尼西亚 印度洋 罗马数字 罗马字 汉堡包 上海话 广州话 东京湾 纽约客 北京烤鸭 中山路 中山大学
中山公园 孙中山 达尔文主义
"""

# Last parts of the tz database's ids that mean something else, or another place, in a sentence.
NOT_NAMES = """
Canary Center Central Chatham Christmas Easter Jersey Johnston Knox Midway Norfolk North Oral Petersburg Regina Resolute
Reunion South Stanley Truk Victoria Vincennes Virgin Wake West Winamac Yancowinna
"""
