"""Classify the errors of chat providers by code, then by HTTP status, for all providers alike."""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import isfinite

from toolchat.errors import (
    ContentFiltered,
    ContextTooLong,
    NotConfigured,
    ProviderAuth,
    ProviderQuota,
    ProviderRateLimited,
    ToolchatError,
    UpstreamInvalid,
    UpstreamUnavailable,
)

_MAX_QUOTED = 300
MAX_RETRY_AFTER = 60.0
"""The longest ``Retry-After``, in seconds, that clients receive."""

_CONTEXT = ("contextlengthexceeded", "contextwindowexceeded", "stringabovemaxlength", "badrequest.toolarge")
_CONTEXT_WORDS = (
    "maximum context length",
    "context length",
    "context window",
    "range of input length",
    "input is too long",
    "prompt is too long",
)
_FILTERED = ("datainspectionfailed", "contentfilter", "contentpolicyviolation", "responsibleaipolicyviolation")
_AUTH = (
    "invalidapikey",
    "incorrectapikey",
    "authenticationerror",
    "permissionerror",
    "permissiondenied",
    "accessdenied",
    "accountdeactivated",
)
_QUOTA = (
    "arrearage",
    "freetieronly",
    "commoditynotpurchased",
    "overdue",
    "billing",
    "insufficientbalance",
    "insufficientcredits",
    "insufficientfunds",
    "exceededcurrentquota",
)
_QUOTA_WORDS = ("insufficient balance", "balance is insufficient", "balance is too low", "insufficient credits")
"""Texts of providers that send them with a code for bad requests or for a refused key."""
_LIMITED = ("throttling", "limitrequests", "limitburstrate", "ratelimit", "toomanyrequests")
_NO_MODEL = ("modelnotfound", "model.notexist", "modelnotsupported", "modelnotexist")
_REFUSED = ("invalidparameter", "invalidrequest", "badrequest", "invalidurl", "unsupportedoperation")
_BROKEN = ("internalerror", "systemerror", "servererror", "modelservicefailed", "modelservingerror", "timeout")
_BUSY = ("modelunavailable", "serviceunavailable", "overloaded", "engineoverloaded")

# MiniMax sends numbers in `base_resp`: https://platform.minimax.io/docs/api-reference/errorcode.md
_NUMBERS = {
    "1000": "internalerror",
    "1001": "timeout",
    "1002": "ratelimit",
    "1004": "invalidapikey",
    "1008": "insufficientbalance",
    "1024": "internalerror",
}

_VARIANTS = """
accessdenied.unpurchased allocationquota.freetieronly apierror app.accessdenied badrequest.emptyinput
badrequest.emptymodel badrequest.emptyparameters badrequesterror billinghardlimitreached billingnotactive
insufficientquota internalerror.algo internalerror.algo.invalidparameter internalerror.timeout invalidrequesterror
invalidtype model.accessdenied notfound notfounderror overloadederror postpaidbilloverdue prepaidbilloverdue
ratelimiterror ratelimitexceeded requesttimeout responsetimeout throttling.allocationquota throttling.burstrate
throttling.ratequota unsupportedparameter unsupportedvalue workspace.accessdenied workspacenotfound
"""
_SHOWN = frozenset((*_CONTEXT, *_FILTERED, *_AUTH, *_QUOTA, *_LIMITED, *_NO_MODEL, *_REFUSED, *_BROKEN, *_BUSY))
_SHOWN |= frozenset((*_NUMBERS, *_VARIANTS.split()))
"""Codes that may be shown and logged; an unknown one may contain text of a user or part of a key."""
_TOKEN = re.compile(r"[A-Za-z0-9._-]{1,64}")


def provider_error(*, status: int, code: str, message: str, retry_after: float | None, variables: str) -> ToolchatError:
    """Convert an error of a provider to an error of ours, whose ``log_fields`` have the status and a known code.

    The codes are those of DashScope (https://help.aliyun.com/en/model-studio/error-code, both spellings), of
    OpenAI and of MiniMax. The code takes precedence over the status, because an error within a stream has no status of
    its own.

    Args:
        status: the HTTP status; 200 for an error object inside a successful answer.
        code: the provider's error code or type; empty without one.
        message: the provider's text; it distinguishes errors with the same code and is never shown to clients.
        retry_after: seconds to wait, from :func:`retry_after_from`.
        variables: the prefix of the provider's environment variables, such as ``OPENAI``.
    """
    word = code.strip().lower().replace("_", "").replace("-", "").replace(" ", "")
    shown = code if _TOKEN.fullmatch(code) and word in _SHOWN else ""
    word, text = _NUMBERS.get(word, word), message.lower()
    advice = next((advice for words, advice in _ADVICE if words in text), "")
    kind = UpstreamInvalid if advice else _kind_of_code(word, text) or _kind_of_status(status, word)
    detail = _DETAILS[kind]
    if kind is NotConfigured:
        detail = _detail_of_address(status, word, text)
    elif kind is UpstreamInvalid:
        detail += advice or _reason(text) or (f" (code {shown})" if shown else f" (status {status})")
    wait = None if retry_after is None else min(retry_after, MAX_RETRY_AFTER)
    error = kind(detail.format(variables), retry_after=wait if kind.retryable else None)
    error.provider_message = message
    error.log_fields["upstream_status"] = status
    if shown:
        error.log_fields["provider_code"] = shown
    return error


def secret_words(api_key: str, headers: Mapping[str, str]) -> tuple[str, ...]:
    """Return what :func:`quotable` removes: the key, and each word of the additional headers."""
    return tuple(" ".join((api_key, *headers.values())).split())


def quotable(message: str, secrets: Iterable[str]) -> str:
    """Shorten a provider's text for operators, and remove what it repeats of our secrets."""
    for secret in secrets:
        pattern = rf"{re.escape(secret[:8])}\S*" if len(secret) >= 8 else rf"(?<!\w){re.escape(secret)}(?!\w)"
        message = re.sub(pattern, "***", message)
    return "".join([each if each.isprintable() else ascii(each)[1:-1] for each in message[:_MAX_QUOTED]])


_NO_TOOLS = "; the model cannot call tools there, set {0}_MODEL to one that can"
_ADVICE = (
    # vllm-project/vllm#9986, langchain4j/langchain4j#3475
    ("requires --enable-auto-tool-choice", "; start vLLM with --enable-auto-tool-choice and --tool-call-parser"),
    ("requires --jinja", "; start llama.cpp's server with --jinja"),  # with status 500: defilantech/LLMKube#126
    ("does not support tools", _NO_TOOLS),  # ollama/ollama#5793
    ("no endpoints found that support tool use", _NO_TOOLS),  # OpenRouter, with status 404: bobrware/bobrchat#60
)
"""Words of a refusal in lower case, and what to do about it."""
_UNSUPPORTED = re.compile(r"unsupported (?:parameter|value): '([\w.]{1,64})'")


def _reason(text: str) -> str:
    """What of a refusal is known to contain nothing of a user, and what to set."""
    if "v1/responses" in text and "v1/chat/completions" in text:
        return "; set {0}_API=responses or chat, whichever the model has, or reasoning_effort none in {0}_OPTIONS"
    unsupported = _UNSUPPORTED.search(text)
    return f": it does not support {unsupported[1]}; change {{0}}_OPTIONS" if unsupported else ""


def _detail_of_address(status: int, word: str, text: str) -> str:
    """What to set if the address does not serve the model, or serves no model at all."""
    if "url error" in text:
        return "the provider does not serve the configured model there; set {0}_MODEL or {0}_ENDPOINT"
    if status != 404 or word in _NO_MODEL or "model" in text:
        return "the provider does not serve the configured model; set {0}_MODEL"
    return "there is no chat model at the configured address; check {0}_BASE_URL, which usually ends in /v1"


_DETAILS: dict[type[ToolchatError], str] = {
    ContextTooLong: "the conversation is longer than the model takes",
    ContentFiltered: "the provider's moderation refused the question or the answer",
    ProviderAuth: "the chat provider refused the key or the account; check {0}_API_KEY",
    ProviderQuota: "the account at the chat provider has no quota or no money left",
    ProviderRateLimited: "the chat provider's rate limit is reached",
    UpstreamUnavailable: "the chat provider reported a failure of its own",
    UpstreamInvalid: "the provider refused the request",
    NotConfigured: "",
}


def retry_after_from(headers: Mapping[str, str]) -> float | None:
    """Read the delay that a provider requests before a retry, in seconds from 0 to 60.

    Understands ``retry-after-ms`` (OpenAI, Azure) and ``Retry-After`` in seconds or as an HTTP date (RFC 9110,
    section 10.2.3); an invalid value counts as absent. The names in ``headers`` must be case-insensitive or in lower
    case.
    """
    milliseconds, value = _number(headers.get("retry-after-ms", "")), headers.get("retry-after", "")
    seconds = _number(value) if milliseconds is None else milliseconds / 1000
    if seconds is None:
        seconds = _seconds_until(value)
    return None if seconds is None else min(max(seconds, 0.0), MAX_RETRY_AFTER)


def _kind_of_code(word: str, message: str) -> type[ToolchatError] | None:
    if word in _CONTEXT or any(words in message for words in _CONTEXT_WORDS):
        return ContextTooLong
    if "url error" in message or word in _NO_MODEL:
        return NotConfigured  # DashScope's "url error": the endpoint does not serve the model
    if any(words in message for words in _QUOTA_WORDS):
        return ProviderQuota
    # Before the table, where "throttling" would match DashScope's Throttling.AllocationQuota, which has both meanings.
    if word == "insufficientquota" or word.endswith("allocationquota"):
        return _kind_of_quota(word, message)
    table: tuple[tuple[tuple[str, ...], type[ToolchatError] | None], ...] = (
        (_FILTERED, ContentFiltered),
        (_QUOTA, ProviderQuota),
        (_AUTH, ProviderAuth),
        (_LIMITED, ProviderRateLimited),
        (_REFUSED, None),  # OpenAI uses this type also for missing keys and wrong URLs, so the status decides
        (_BROKEN + _BUSY, UpstreamUnavailable),
    )
    return next((kind for words, kind in table if any(part in word for part in words)), None)


def _kind_of_quota(word: str, message: str) -> type[ToolchatError]:
    """Distinguish the two meanings of one code: a limit per minute, which recovers, or an exhausted plan."""
    if "free" in message or "billing" in message:
        return ProviderQuota
    per_minute = word.startswith("throttling") or "allocated quota" in message
    return ProviderRateLimited if per_minute else ProviderQuota


def _kind_of_status(status: int, word: str) -> type[ToolchatError]:
    # 402 is DeepSeek's "insufficient balance" (https://api-docs.deepseek.com/quick_start/error_codes).
    if status == 402:
        return ProviderQuota
    if status in (401, 403):
        return ProviderAuth
    if status == 404:
        return NotConfigured
    if status == 413:
        return ContextTooLong
    if status == 429:
        return ProviderRateLimited
    # 408 is the upstream's own timeout, so the request may succeed later; every other 4xx here blames the request.
    refused = 400 <= status < 500 and status != 408
    return UpstreamInvalid if refused or any(part in word for part in _REFUSED) else UpstreamUnavailable


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if isfinite(number) else None


def _seconds_until(date: str) -> float | None:
    try:
        moment = parsedate_to_datetime(date)
    except (ValueError, TypeError, OverflowError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - datetime.now(UTC)).total_seconds()
