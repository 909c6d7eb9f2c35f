"""Translation of texts by Baidu."""

from app.tools.baidu_translate.client import BaiduTranslateClient, BaiduTranslateSettings
from app.tools.baidu_translate.tools import BaiduTranslateService, BaiduTranslateTools
from toolchat import Components, OutboundHttp, ToolModule

__all__ = ["module"]


def create_client(http: OutboundHttp, settings: BaiduTranslateSettings) -> BaiduTranslateClient:
    """Create the client with its usual time limits."""
    return BaiduTranslateClient(http, settings)


async def check_upstream(components: Components) -> str:
    """Translate one word, which uses two characters of the monthly quota."""
    translation = await (await components.get(BaiduTranslateClient)).translate("你好", "zh", "en")
    return f"你好 is {translation.text}"


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
