"""The translation tool, as a function tool and as a method tool."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from app.places.recognizers import find_language
from app.tools.baidu_translate.translator import CACHE_SECONDS, TranslationResult, Translator
from toolchat import Recognizer, tool

_DESCRIPTION = "Baidu translation function for general text translation"
_Text = Annotated[str, Field(alias="q", description="Content that needs to be translated")]
# A required parameter with a default: models name the language if they know it, and "auto" detects it.
_Source = Annotated[
    str,
    Field(
        alias="from", description="Source language that needs to be translated", json_schema_extra={"default": "auto"}
    ),
    Recognizer(find_language),
]
_Target = Annotated[str, Field(alias="to", description="Target language to translate into"), Recognizer(find_language)]


class TranslateRequest(BaseModel):
    """Request to translate text to a target language."""

    model_config = ConfigDict(extra="forbid")

    text: _Text
    source: _Source
    target: _Target


@tool(name="baiduTranslateFunction", description=_DESCRIPTION, cache_seconds=CACHE_SECONDS)
class BaiduTranslateService:
    """The function tool."""

    def __init__(self, client: Translator) -> None:
        self._client = client

    async def __call__(self, request: TranslateRequest) -> TranslationResult:
        """Translate a text; see :meth:`Translator.translate`."""
        return await self._client.translate(request.text, request.source, request.target)


class BaiduTranslateTools:
    """The method tool."""

    def __init__(self, client: Translator) -> None:
        self._client = client

    @tool(name="baiduTranslateMethod", description=_DESCRIPTION, cache_seconds=CACHE_SECONDS)
    async def baidu_translate(self, text: _Text, source: _Source, target: _Target) -> TranslationResult:
        """Translate a text; see :meth:`Translator.translate`."""
        return await self._client.translate(text, source, target)
