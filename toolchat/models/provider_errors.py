"""Classify the errors of chat providers by words, code and status; ``provider_errors.toml`` has the vocabulary."""

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from importlib.resources import files
from math import isfinite
from typing import Any

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
from toolchat.models.profiles import Profile
from toolchat.models.refusals import WRAPPERS

_MAX_READ, _MAX_QUOTED = 2000, 300
MAX_RETRY_AFTER = 60.0
"""The longest ``Retry-After``, in seconds, that clients receive."""
_TOKEN = re.compile(r"[A-Za-z0-9._-]{1,64}")
_UNQUOTED = re.compile(WRAPPERS + r"""(?:[^'"`]|(?<=\w)'(?=\w)|(['"`])[\w./:[\]-]{1,64}\1)*""", re.IGNORECASE)
"""The beginning of a text up to its first quotation of more than a word: what follows may be a user's. The words of the
provider behind a gateway are no quotation."""

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
_NO_MODEL = "the provider does not serve the configured model; set {0}_MODEL"
_NO_PATH = "there is no chat model at the configured address; check {0}_BASE_URL, which usually ends in /v1"
_MALFORMED = "malformed-call"
"""The model's call cannot be read: the same question often succeeds."""
_KINDS = {kind.code: kind for kind in _DETAILS} | {_MALFORMED: UpstreamInvalid}
_BY_STATUS: dict[int, type[ToolchatError]] = {
    402: ProviderQuota,  # DeepSeek: https://api-docs.deepseek.com/quick_start/error_codes
    403: ProviderAuth,
    404: NotConfigured,
    408: UpstreamUnavailable,
    409: UpstreamUnavailable,  # a conflict with another request, and "too early": OpenAI's libraries retry them
    410: NotConfigured,  # NVIDIA, of models: https://github.com/capocasa/3code/issues/2
    413: ContextTooLong,
    425: UpstreamUnavailable,
    429: ProviderRateLimited,
    451: ContentFiltered,  # StepFun: https://platform.stepfun.com/docs/zh/guide/exception
}


class _Vocabulary:
    """What providers say when they refuse, as patterns."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.shown = frozenset(data["shown"].split())
        self.codes = {error: re.compile("|".join(parts)) for error, parts in data["codes"].items()}
        self.words = {error: re.compile("|".join(parts)) for error, parts in data["words"].items()}
        self.advice = [
            (re.compile(each["words"]), each.get("error", UpstreamInvalid.code), each["text"])
            for each in data["advice"]
        ]


@cache
def _vocabulary() -> _Vocabulary:
    return _Vocabulary(tomllib.loads(files(__package__).joinpath("provider_errors.toml").read_text("utf-8")))


def provider_error(
    *,
    status: int,
    code: str,
    message: str,
    retry_after: float | None,
    variables: str,
    profile: Profile = Profile(),
) -> ToolchatError:
    """Convert an error of a provider to an error of ours, whose ``log_fields`` have the status and a known code.

    Words and codes take precedence over the status, because an error within a stream has no status of its own; but not
    over a 401, and the words of a 5xx do not count, since it may quote the conversation.

    Args:
        status: the HTTP status; 200 for an error object inside a successful answer.
        code: the provider's error code or type; empty without one.
        message: the provider's text; it distinguishes errors with the same code and is never shown to clients.
        retry_after: seconds to wait, from :func:`retry_after_from`.
        variables: the prefix of the provider's environment variables, such as ``OPENAI``.
        profile: the codes that only this provider has, and what to do about its errors.
    """
    word, whole = re.sub("[-_ ]", "", code.strip().lower()), message[:_MAX_READ].strip().lower()
    shown = code if code in profile.errors or (_TOKEN.fullmatch(code) and word in _vocabulary().shown) else ""
    text = unquoted(whole) if status < 500 else ""
    name, advice = (ProviderAuth.code, "") if status == 401 else _meaning(code, word, text, whole, profile)
    refused = UpstreamInvalid if name or 400 <= status < 500 else UpstreamUnavailable
    kind = _KINDS.get(name) or _BY_STATUS.get(status, refused)
    if kind is NotConfigured:
        advice = advice or (_NO_MODEL if status not in (404, 410) or "model" in word + text else _NO_PATH)
    elif kind is UpstreamInvalid:
        advice = advice or (f" (code {shown})" if shown else f" (status {status})")
    advice = advice or profile.advice.get(kind.code, "")
    detail = advice if advice[:1].isalpha() else _DETAILS[kind] + advice
    retryable = kind.retryable or name == _MALFORMED
    wait = min(retry_after, MAX_RETRY_AFTER) if retryable and retry_after is not None else None
    error = kind(detail.format(variables), retry_after=wait, retryable=retryable)
    error.provider_message = message
    error.log_fields["upstream_status"] = status
    if shown:
        error.log_fields["provider_code"] = shown
    return error


def unquoted(text: str) -> str:
    """The beginning of a refusal that is in the provider's own words."""
    found = _UNQUOTED.match(text[:_MAX_READ])
    return found[0] if found else ""


def _meaning(code: str, word: str, text: str, whole: str, profile: Profile) -> tuple[str, str]:
    """Our code for an error and what to do about it, each empty if unknown."""
    known = _vocabulary()
    for words, name, advice in known.advice:
        if found := words.search(text) or words.fullmatch(whole):
            return name, advice.replace("{1}", "".join(found.groups("")))
    name = _first(known.words, text) or profile.errors.get(code, "")
    # Before the codes, where "throttling" would match DashScope's Throttling.AllocationQuota, which has both meanings.
    if not name and (word == "insufficientquota" or word.endswith("allocationquota")):
        name = _kind_of_quota(word, text).code
    return name or _first(known.codes, word), ""


def _first(patterns: Mapping[str, re.Pattern[str]], said: str) -> str:
    return next((name for name, pattern in patterns.items() if pattern.search(said)), "")


def _kind_of_quota(word: str, message: str) -> type[ToolchatError]:
    """Distinguish the two meanings of one code: a limit per minute, which recovers, or an exhausted plan."""
    if "free" in message or "billing" in message:
        return ProviderQuota
    per_minute = word.startswith("throttling") or "allocated quota" in message
    return ProviderRateLimited if per_minute else ProviderQuota


ApiKey = str | Callable[[], str]
"""A key, or a function that returns it for each request."""


def key_text(key: ApiKey) -> str:
    """Return the key of the moment."""
    return key if isinstance(key, str) else key()


def secret_words(api_key: ApiKey, headers: Mapping[str, str]) -> tuple[str, ...]:
    """Return what :func:`quotable` removes: the key, and each word of the additional headers."""
    return tuple(" ".join((key_text(api_key), *headers.values())).split())


def quotable(message: str, secrets: Iterable[str]) -> str:
    """Shorten a provider's text for operators, and remove what it repeats of our secrets."""
    for secret in secrets:
        pattern = rf"{re.escape(secret[:8])}\S*" if len(secret) >= 8 else rf"(?<!\w){re.escape(secret)}(?!\w)"
        message = re.sub(pattern, "***", message)
    return "".join([each if each.isprintable() else ascii(each)[1:-1] for each in message[:_MAX_QUOTED]])


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
