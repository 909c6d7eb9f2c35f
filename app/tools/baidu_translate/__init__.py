"""Translation of texts by Baidu or LibreTranslate."""

from app.tools.baidu_translate.client import BaiduTranslateClient
from app.tools.baidu_translate.tools import BaiduTranslateService, BaiduTranslateTools
from app.tools.baidu_translate.translator import BaiduTranslateSettings, Translator
from toolchat import Components, OutboundHttp, ToolModule


def create_client(http: OutboundHttp, settings: BaiduTranslateSettings) -> Translator:
    """Create the provider's client; the sandbox plays Baidu."""
    if settings.provider == "libretranslate" and not settings.in_sandbox:
        from app.tools.baidu_translate.libretranslate import LibreTranslateClient

        return LibreTranslateClient(http, settings)
    return BaiduTranslateClient(http, settings)


async def check_upstream(components: Components) -> str:
    """Translate one word, which uses two characters of the monthly quota."""
    translation = await (await components.get(Translator)).translate("你好", "zh", "en")
    return f"你好 is {translation['text']}"


module = ToolModule(
    title="Translate",
    path="/translate",
    default_query="帮我把以下内容翻译成英文：你好，世界。",
    settings=BaiduTranslateSettings,
    provides=(create_client,),
    functions=(BaiduTranslateService,),
    methods=(BaiduTranslateTools,),
    interchangeable=True,
    check=check_upstream,
    examples={
        "中译英": "帮我把以下内容翻译成英文：你好，世界。",
        "英译日": "把 Good morning 翻译成日语",
        "两种语言": "请把“谢谢”分别翻译成法语和韩语",
        "English": 'How do you say "Where is the station?" in Chinese?',
        "Two languages": 'Translate "Thank you" into French and Korean',
    },
)
