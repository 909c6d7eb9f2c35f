"""What every translation service does: its settings, and a translation as the tool's result."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field
from typing_extensions import TypedDict

from toolchat import BaseUrl, Secret, ToolArgumentsError, ToolExecutionError, ToolSettings

CACHE_SECONDS = 3600
"""An hour: a translation does not age, but what users had translated should not lie in memory for long."""
MAX_TEXT_BYTES = 6000
"""Baidu's bound for the text of one request, in UTF-8 (https://fanyi-api.baidu.com/doc/21)."""
_STANDARD_CHARS = 1000


class BaiduTranslateSettings(ToolSettings):
    """Settings of the translation service, and the limits of Baidu's plan."""

    has_sandbox: ClassVar[bool] = True
    alternative: ClassVar[str] = "or TRANSLATE_PROVIDER=libretranslate and LIBRETRANSLATE_URL, a server of your own"

    provider: Literal["baidu", "libretranslate"] = Field(
        "baidu",
        validation_alias="TRANSLATE_PROVIDER",
        description="baidu, or libretranslate: a server of your own, by its URL",
    )
    app_id: Secret | None = Field(None, description="APP ID of the Baidu translate account")
    secret_key: Secret | None = Field(None, description="Secret key of the Baidu translate account")
    base_url: BaseUrl = Field(
        "https://fanyi-api.baidu.com/api/trans/vip/translate", description="Address of the general translation API"
    )
    requests_per_second: float = Field(
        1,
        gt=0,
        le=1000,
        description="Requests per second that the plan allows: Standard 1, Advanced 10, Premium 100; "
        "above 1, texts may have 6000 characters instead of 1000",
    )
    libretranslate_url: BaseUrl | None = Field(
        None, validation_alias="LIBRETRANSLATE_URL", description="Address of LibreTranslate, without /translate"
    )
    libretranslate_api_key: Secret | None = Field(
        None, validation_alias="LIBRETRANSLATE_API_KEY", description="Key of LibreTranslate, if the server wants one"
    )

    def required_fields(self) -> tuple[str, ...]:
        """Return the account or the address, as the provider needs it."""
        return ("app_id", "secret_key") if self.provider == "baidu" else ("libretranslate_url",)

    @property
    def max_chars(self) -> int:
        """Longest text in characters; the plan with one request per second, Standard, also takes the shortest texts."""
        return _STANDARD_CHARS if self.requests_per_second <= 1 else MAX_TEXT_BYTES


TranslationResult = TypedDict(
    "TranslationResult",
    {
        "from": Annotated[str, Field(title="原文语言 / source language", description="the service's code")],
        "to": Annotated[str, Field(title="译文语言 / target language", description="the service's code")],
        "text": Annotated[str, Field(title="译文 / translation")],
    },
)
"""A translation under Baidu's own names, with the blanks and line breaks of the original.

The language of the original is the detected one if it was left to detection. ``from`` is a keyword, so this cannot be a
class.
"""


class Translator:
    """Translates texts."""

    timeout = 10.0
    """Seconds one request may take; half of a tool's usual limit, so that a second try still fits."""

    async def translate(self, text: str, source: str, target: str) -> TranslationResult:
        """Translate a text.

        Args:
            text: what to translate; may have several lines.
            source: its language, by any name or code; ``auto`` or nothing lets the service detect it.
            target: the language to translate into, by any name or code.

        Raises:
            ToolExecutionError: the text, a language or the account is not accepted, or too many calls wait.
            UpstreamError: the service cannot be reached, or its answer is not valid.
        """
        raise NotImplementedError


def nothing_to_translate() -> ToolArgumentsError:
    """Return the error for a blank text."""
    return ToolArgumentsError("q: there is nothing to translate", [{"field": "q", "problem": "is blank"}])


def too_long(length: str, limit: str) -> ToolExecutionError:
    """Return the error for a text that is longer than the service accepts."""
    return ToolExecutionError(
        f"the text has {length}; at most {limit} can be translated at once",
        kind="too-long",
        hint="translate it in parts, one call after the other",
    )


def reported_language(answer: Mapping[str, Any], key: str, asked: str) -> str:
    """Return the language that an answer names, else the requested one."""
    language = answer.get(key)
    return language if isinstance(language, str) and 0 < len(language) <= 16 else asked
