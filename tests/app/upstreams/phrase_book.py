"""The phrase book that the sandbox uses instead of a translator: everyday phrases in seven languages."""

import re
from functools import cache

_LANGUAGES = ("zh", "en", "jp", "kor", "fra", "spa", "de")
# Without final punctuation; that of the request is appended in the form of the target language.
_BOOK = """\
你好，世界|Hello, world|こんにちは、世界|안녕, 세상|Bonjour, le monde|Hola, mundo|Hallo, Welt
你好|Hello|こんにちは|안녕하세요|Bonjour|Hola|Hallo
早上好|Good morning|おはようございます|좋은 아침입니다|Bonjour|Buenos días|Guten Morgen
晚上好|Good evening|こんばんは|좋은 저녁입니다|Bonsoir|Buenas tardes|Guten Abend
晚安|Good night|おやすみなさい|안녕히 주무세요|Bonne nuit|Buenas noches|Gute Nacht
再见|Goodbye|さようなら|안녕히 가세요|Au revoir|Adiós|Auf Wiedersehen
谢谢|Thank you|ありがとうございます|감사합니다|Merci|Gracias|Danke
不客气|You're welcome|どういたしまして|천만에요|De rien|De nada|Gern geschehen
对不起|I'm sorry|ごめんなさい|미안합니다|Je suis désolé|Lo siento|Es tut mir leid
是|Yes|はい|네|Oui|Sí|Ja
不|No|いいえ|아니요|Non|No|Nein
你好吗|How are you|お元気ですか|어떻게 지내세요|Comment allez-vous|Cómo está|Wie geht es Ihnen
我很好|I'm fine|元気です|저는 잘 지내요|Je vais bien|Estoy bien|Mir geht es gut
你叫什么名字|What is your name|お名前は何ですか|이름이 무엇입니까|Comment vous appelez-vous|Cómo se llama|Wie heißen Sie
很高兴认识你|Nice to meet you|はじめまして|만나서 반갑습니다|Enchanté|Mucho gusto|Freut mich
我爱你|I love you|愛しています|사랑해요|Je t'aime|Te quiero|Ich liebe dich
生日快乐|Happy birthday|お誕生日おめでとう|생일 축하합니다|Joyeux anniversaire|Feliz cumpleaños|\
Alles Gute zum Geburtstag
新年快乐|Happy New Year|明けましておめでとう|새해 복 많이 받으세요|Bonne année|Feliz año nuevo|Frohes neues Jahr
欢迎|Welcome|ようこそ|환영합니다|Bienvenue|Bienvenidos|Willkommen
祝你好运|Good luck|幸運を祈ります|행운을 빕니다|Bonne chance|Buena suerte|Viel Glück
车站在哪里|Where is the station|駅はどこですか|역이 어디에 있습니까|Où est la gare|\
Dónde está la estación|Wo ist der Bahnhof
这个多少钱|How much is this|これはいくらですか|이것은 얼마입니까|Combien ça coûte|Cuánto cuesta esto|Wie viel kostet das
现在几点|What time is it|今何時ですか|지금 몇 시예요|Quelle heure est-il|Qué hora es|Wie spät ist es
今天天气很好|The weather is nice today|今日は天気がいいです|오늘 날씨가 좋아요|Il fait beau aujourd'hui|\
Hoy hace buen tiempo|Heute ist schönes Wetter
请帮帮我|Please help me|助けてください|도와주세요|Aidez-moi, s'il vous plaît|Ayúdeme, por favor|Bitte helfen Sie mir
我不明白|I don't understand|わかりません|이해하지 못합니다|Je ne comprends pas|No entiendo|Ich verstehe nicht
我喜欢中国菜|I like Chinese food|中華料理が好きです|중국 음식을 좋아해요|J'aime la cuisine chinoise|\
Me gusta la comida china|Ich mag chinesisches Essen
苹果|Apple|りんご|사과|Pomme|Manzana|Apfel
水|Water|水|물|Eau|Agua|Wasser
咖啡|Coffee|コーヒー|커피|Café|Café|Kaffee
中国|China|中国|중국|Chine|China|China
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
_STOPS = ".!?。！？"
_WIDE = str.maketrans(".!?", "。！？")
_NARROW = str.maketrans("。！？", ".!?")


def detect_language(line: str) -> str:
    """Detect the language of a line: by its script, then by the phrase book, else English."""
    for language, script in _SCRIPTS:
        if re.search(script, line):
            return language
    key = _key(line)
    return next((language for language in _LANGUAGES if key in _book()[language]), "en")


def translate_line(line: str, source: str, target: str) -> str:
    """Translate a line with the phrase book; an unknown line is marked with the target language."""
    phrases = _book().get(source, {}).get(_key(line))
    if phrases is None or target not in _LANGUAGES:
        return f"[{target}] {line}"
    if source == target:
        return line
    text = line.rstrip()
    stops = text[len(text.rstrip(_STOPS)) :].translate(_WIDE if target in ("zh", "jp") else _NARROW)
    opening = {"?": "¿", "!": "¡"}.get(stops[:1], "") if target == "spa" else ""
    return f"{opening}{phrases[_LANGUAGES.index(target)]}{stops}"


@cache
def _book() -> dict[str, dict[str, list[str]]]:
    book: dict[str, dict[str, list[str]]] = {language: {} for language in _LANGUAGES}
    for row in _BOOK.splitlines():
        phrases = row.split("|")
        for language, phrase in zip(_LANGUAGES, phrases, strict=True):
            book[language].setdefault(_key(phrase), phrases)
    return book


def _key(line: str) -> str:
    return line.strip().rstrip(f"{_STOPS} ").lstrip("¿¡").casefold().replace("，", ",").replace("’", "'")
