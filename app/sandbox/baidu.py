"""A stand-in for Baidu's general translation: its wire format, with a phrase book instead of a translator.

``GET`` or ``POST /baidu/api/trans/vip/translate`` with ``q``, ``from``, ``to``, ``appid``, ``salt`` and ``sign``,
form-encoded. The account is ``APP_ID`` and ``SECRET_KEY`` below; the sign is checked as Baidu checks it. Phrases of
the book are translated between its languages; every other line comes back as ``[en] line``, which nobody can take
for a translation. The same question always has the same answer, except as told here:

=====================  =================================================================================
``q``                  answer
=====================  =================================================================================
``error:58001``        that error code, always; any code of the table
``error-int:58001``    the same with the code as a number
``error-once:52001``   that error code and, when asked again, a translation; then the error code again
=====================  =================================================================================

=====================  =================================================================================
``appid``              answer
=====================  =================================================================================
``sandbox``            no limit
``sandbox-qps-5``      error 54003 for the sixth request within a second; any number from 1 to 1000
=====================  =================================================================================

The secret key is the same for every app id. A text of more than 6000 bytes is answered by 52001, as the real
service's documentation has it; an unknown app id by 52003, a wrong sign by 54001, a missing field by 54000, a
language that is not in the list by 58001.
"""

import hashlib
import re
import time
from collections import deque
from collections.abc import Mapping
from functools import cache
from typing import Any
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import BaseRoute, Route

__all__ = ["APP_ID", "SECRET_KEY", "routes"]

APP_ID = "sandbox"
SECRET_KEY = "sandbox"  # noqa: S105

_FIELDS = ("q", "from", "to", "appid", "salt", "sign")
_MAX_BODY_BYTES = 64 * 1024
_MAX_TEXT_BYTES = 6000
_LANGUAGES = frozenset(
    "zh en yue wyw jp kor fra spa th ara ru pt de it el nl pl bul est dan fin cs rom slo swe hu cht vie".split()
)
_MESSAGES = {
    "52001": "TIMEOUT",
    "52002": "SYSTEM ERROR",
    "52003": "UNAUTHORIZED USER",
    "54000": "PARAM_FROM_TO_OR_Q_EMPTY",
    "54001": "Invalid Sign",
    "54003": "Invalid Access Limit",
    "54004": "Please recharge",
    "54005": "Long query too frequent",
    "58000": "INVALID_CLIENT_IP",
    "58001": "INVALID_TO_PARAM",
    "58002": "SERVICE CLOSED",
    "58003": "IP BANNED",
    "90107": "Certification not passed",
    "20003": "Text has a safety risk",
}
_BOOK_LANGUAGES = ("zh", "en", "jp", "kor", "fra", "spa", "de")
_BOOK = """\
你好，世界|Hello, world|こんにちは、世界|안녕, 세상|Bonjour, le monde|Hola, mundo|Hallo, Welt
你好|Hello|こんにちは|안녕하세요|Bonjour|Hola|Hallo
早上好|Good morning|おはようございます|좋은 아침입니다|Bonjour à tous|Buenos días|Guten Morgen
晚上好|Good evening|こんばんは|좋은 저녁입니다|Bonsoir|Buenas tardes|Guten Abend
晚安|Good night|おやすみなさい|안녕히 주무세요|Bonne nuit|Buenas noches|Gute Nacht
再见|Goodbye|さようなら|안녕히 가세요|Au revoir|Adiós|Auf Wiedersehen
谢谢|Thank you|ありがとうございます|감사합니다|Merci|Gracias|Danke
不客气|You are welcome|どういたしまして|천만에요|De rien|De nada|Gern geschehen
对不起|I am sorry|ごめんなさい|미안합니다|Je suis désolé|Lo siento|Es tut mir leid
请|Please|お願いします|부탁합니다|S'il vous plaît|Por favor|Bitte
是|Yes|はい|네|Oui|Sí|Ja
不|No|いいえ|아니요|Non|No, señor|Nein
你好吗|How are you|お元気ですか|어떻게 지내세요|Comment allez-vous|¿Cómo está|Wie geht es Ihnen
我很好|I am fine|元気です|저는 잘 지내요|Je vais bien|Estoy bien|Mir geht es gut
你叫什么名字|What is your name|お名前は何ですか|이름이 무엇입니까|Comment vous appelez-vous|¿Cómo se llama|Wie heißen Sie
很高兴认识你|Nice to meet you|はじめまして|만나서 반갑습니다|Enchanté|Mucho gusto|Freut mich
我爱你|I love you|愛しています|사랑해요|Je t'aime|Te quiero|Ich liebe dich
生日快乐|Happy birthday|お誕生日おめでとう|생일 축하합니다|Joyeux anniversaire|Feliz cumpleaños|Alles Gute zum Geburtstag
新年快乐|Happy New Year|明けましておめでとう|새해 복 많이 받으세요|Bonne année|Feliz año nuevo|Frohes neues Jahr
欢迎|Welcome|ようこそ|환영합니다|Bienvenue|Bienvenidos|Willkommen
祝你好运|Good luck|幸運を祈ります|행운을 빕니다|Bonne chance|Buena suerte|Viel Glück
车站在哪里|Where is the station|駅はどこですか|역이 어디에 있습니까|Où est la gare|¿Dónde está la estación|Wo ist der Bahnhof
这个多少钱|How much is this|これはいくらですか|이것은 얼마입니까|Combien ça coûte|¿Cuánto cuesta|Wie viel kostet das
现在几点|What time is it|今何時ですか|지금 몇 시예요|Quelle heure est-il|¿Qué hora es|Wie spät ist es
今天天气很好|The weather is nice today|今日は天気がいいです|오늘 날씨가 좋아요|Il fait beau aujourd'hui|Hoy hace buen tiempo|\
Heute ist schönes Wetter
请帮帮我|Please help me|助けてください|도와주세요|Aidez-moi, s'il vous plaît|Ayúdeme, por favor|Bitte helfen Sie mir
我不明白|I do not understand|わかりません|이해하지 못합니다|Je ne comprends pas|No entiendo|Ich verstehe nicht
苹果|Apple|りんご|사과|Pomme|Manzana|Apfel
水|Water|水です|물|Eau|Agua|Wasser
中国|China|中国です|중국|Chine|China, Asia|China, Asien
"""
_SCRIPTS = (
    ("jp", "[\u3040-\u30ff]"),
    ("kor", "[\uac00-\ud7a3]"),
    ("zh", "[\u4e00-\u9fff]"),
    ("ru", "[\u0400-\u04ff]"),
    ("th", "[\u0e00-\u0e7f]"),
    ("ara", "[\u0600-\u06ff]"),
    ("el", "[\u0370-\u03ff]"),
)
_WIDE_STOPS = str.maketrans(".!?", "。！？")
_NARROW_STOPS = str.maketrans("。！？", ".!?")


async def translate(request: Request) -> JSONResponse:
    """Answer one request as Baidu would; an error has HTTP status 200 as well."""
    fields = await _fields(request)
    if fields is None:
        return JSONResponse({"detail": "too long"}, status_code=413)
    code = _refusal(fields) or _error_on_demand(fields["q"], request.app) or _limit(fields["appid"], request.app)
    if code is not None:
        shown = int(code) if fields["q"].startswith("error-int:") else code
        return _Escaped({"error_code": shown, "error_msg": _MESSAGES[code]})
    lines = [line for line in fields["q"].split("\n") if line.strip()]
    source = detected(lines[0]) if fields["from"] == "auto" else fields["from"]
    results = [{"src": line, "dst": _translated(line, source, fields["to"])} for line in lines]
    return _Escaped({"from": source, "to": fields["to"], "trans_result": results})


routes: list[BaseRoute] = [Route("/baidu/api/trans/vip/translate", translate, methods=["GET", "POST"])]
"""What the sandbox serves of Baidu."""
