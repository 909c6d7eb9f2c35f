"""Numerals: digits, and words for numbers in English and Chinese."""

__all__ = ["NUMBER_WORDS", "NUMERAL", "read_number"]

_DIGITS = {digit: n for n, digit in enumerate("零一二三四五六七八九")} | {"两": 2, "": 0}
_SMALL = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
NUMBER_WORDS = {word: n for n, word in enumerate(_SMALL)} | {"twenty": 20, "thirty": 30}
NUMERAL = (
    rf"(?:(?<![-.0-9第])[0-9]{{1,9}}|(?<!第)(?:[二三四五六七八九]?十[一二三四五六七八九]?|[一二两三四五六七八九])(?![百千万半])"
    rf"|\b(?:an?|{'|'.join(NUMBER_WORDS)})\b)"
)
"""A whole number that counts something; "a" is one."""


def read_number(text: str) -> float:
    """The value of a numeral; a whole one is an ``int``."""
    if text[-1].isascii():
        plain = text.replace(",", "")
        return NUMBER_WORDS.get(plain, 1) if plain.isalpha() else float(plain) if "." in plain else int(plain)
    tens, ten, ones = text.rpartition("十")
    return 10 * (_DIGITS[tens] or 1) * bool(ten) + _DIGITS[ones]
