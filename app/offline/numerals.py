"""Numerals: digits, Chinese characters and English words for numbers."""

__all__ = ["NUMBER_WORDS", "NUMERAL", "read_number"]

_DIGITS = {c: i for i, c in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
_TENS = {"十": 10, "百": 100, "千": 1000, "万": 10000}
_SMALL = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
NUMBER_WORDS = {word: n for n, word in enumerate(_SMALL)} | {"fifteen": 15, "twenty": 20, "thirty": 30, "fifty": 50}
NUMERAL = rf"(?:(?<![-.0-9])[0-9]{{1,9}}|[一二两三四五六七八九十百千万]{{1,7}}|\b(?:an?|{'|'.join(NUMBER_WORDS)})\b)"
"""A whole number that counts something; "a" is one."""


def read_number(text: str) -> float:
    """The value of a numeral; a whole one is an ``int``."""
    if text[-1].isascii():
        plain = text.replace(",", "")
        return NUMBER_WORDS.get(plain, 1) if plain.isalpha() else float(plain) if "." in plain else int(plain)
    if not any(each in _TENS for each in text):
        return int("".join(str(_DIGITS.get(each, 0)) for each in text))
    total, below, digit = 0, 0, 0
    for each in text:
        if each == "万":
            total, below, digit = (total + below + digit) * 10000, 0, 0
        elif each in _TENS:
            below, digit = below + (digit or 1) * _TENS[each], 0
        else:
            digit = _DIGITS.get(each, 0)
    return total + below + digit
