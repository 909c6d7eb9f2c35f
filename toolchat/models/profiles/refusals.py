"""What a refusal of a provider, in its exact words, says about the requests that it takes."""

import re
from collections.abc import Mapping
from typing import Any

from toolchat.models.profiles import Profile

# Nothing before the words but the prefix of LiteLLM: servers quote the conversation in their errors.
_START = r"(?:litellm\.\w+: (?:\w+ - )?)*"


def _at_start(*words: str) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(_START + each, re.IGNORECASE) for each in words)


_OTHER_API = _at_start(
    # "Function tools with reasoning_effort are not supported for gpt-5.6-luna in /v1/chat/completions. To use function
    # tools, use /v1/responses or ...": sandialabs/atlas-ui-3#756
    r"function tools with reasoning_effort are not supported [^'\"]{1,200} use /?v1(/responses|/chat/completions)\b",
    r"this model is only supported in /?v1(/responses|/chat/completions)\b",
)
_FIELD = _at_start(
    # nashsu/llm_wiki#610, langchain-ai/open-swe#628
    r"unsupported parameter: '(\w+)(?:\.\w+)*' is not supported with this model\.(?: use '(\w+)' instead)?",
    r"unsupported value: '(temperature|top_p)' does not support",  # QwenLM/qwen-code#921
    r"unknown parameter: '(\w+)'",  # cursor/cursor#2786
    r"unrecognized request argument supplied: (\w+)",  # Azure/azure-sdk-for-net#45719
    r"[\w.-]+ models don't support (\w+)=",  # chatboxai/chatbox#2627
    r"property '(\w+)' is unsupported",  # Groq: fanenr/chatbot#21
    r'invalid json payload received\. unknown name "(\w+)": cannot find field',  # Gemini: free-claude-code#542
    r"body\.(\w+)(?:\.\w+)*: extra inputs are not permitted",  # Mistral: dnakov/anon-kode#53
)
_OPTIONAL = re.compile(
    "temperature|top_p|frequency_penalty|presence_penalty|seed|reasoning(_effort)?|parallel_tool_calls|stream_options"
)
"""Request fields without which the answer is still the one that was asked for, if the provider does not have them."""
_MESSAGE_FIELD = _at_start(
    # Groq: janhq/jan#8136
    r"'messages\.\d+' : for 'role: ?assistant' the following must be satisfied\[\('messages\.\d+' : property '(\w+)'",
    r"messages\.\d+\.assistant\.(\w+): property '[\w.]+' is unsupported",  # Cerebras: Kilo-Org/kilocode#10375
    r"body\.messages\.\d+\.assistant\.(\w+): extra inputs are not permitted",  # Mistral: charmbracelet/crush#1590
)
_WITHOUT_REASONING = _at_start(
    # DeepSeek: anomalyco/opencode#24722, langchain-ai/langchain#34516; Kimi: continuedev/continue#11711
    "the `?reasoning_content`? in the thinking mode must be passed back to the api",
    "missing `?reasoning_content`? field in the assistant message",
    "thinking is enabled but reasoning_content is missing in assistant tool call message",
)
_STREAMS_ONLY = _at_start(
    "parameter.enable_thinking must be set to false for non-streaming calls",  # langchain4j/langchain4j#3974
    "parameter.enable_thinking必须设置为false才能进行非流式调用",  # alibaba/spring-ai-alibaba#867
)
_NOT_ENCRYPTED = _at_start("encrypted content is not supported with this model")


def adapted(profile: Profile, status: int, refusal: str) -> Profile | None:
    """The profile as a refusal changes it; ``None`` if it says nothing new, or nothing that is known for sure.

    Args:
        profile: that of the refused request.
        status: the status of the refusal.
        refusal: the text of the error.
    """
    change: Mapping[str, Any] = {}
    if status < 500 and (other := _found(_OTHER_API, refusal)):
        change = {"api": other[1].lower()}
    elif status in (400, 422):
        change = _change(refusal)
    changed = profile.changed(**change)
    return changed if changed != profile else None


def _change(refusal: str) -> Mapping[str, Any]:
    if _found(_WITHOUT_REASONING, refusal):
        return {"sent_back": {"reasoning_content": "all"}, "filled": {"reasoning_content": " "}}
    if _found(_STREAMS_ONLY, refusal):
        return {"streams_only": True}
    if _found(_NOT_ENCRYPTED, refusal):
        return {"renamed": {"include": ""}}
    if found := _found(_MESSAGE_FIELD, refusal):
        return {"sent_back": {found[1]: "never"}}
    if (found := _found(_FIELD, refusal)) is None:
        return {}
    name, instead = (*found.groups(), None)[:2]
    return {"renamed": {name: instead or ""}} if instead or _OPTIONAL.fullmatch(name) else {}


def _found(patterns: tuple[re.Pattern[str], ...], refusal: str) -> re.Match[str] | None:
    """The words with which a refusal begins, if they are among the patterns."""
    return next((found for each in patterns if (found := each.match(refusal))), None)
