"""Read why a provider ended its answer: an open vocabulary, which servers extend as they like."""

import logging
import re

from toolchat.errors import UpstreamInvalid, UpstreamUnavailable

_COMPLETE = re.compile("stop(ped|sequence)?|endturn|eos(token)?|completed?|done|(function|tool)calls?|tooluse")
_USUAL = ("stop", "tool_calls")
_MALFORMED = re.compile("malformed|unexpectedtoolcall")
"""The provider could not read the model's call; the same question often succeeds."""
_INTERRUPTED = re.compile("abort|cancel|error|fail|insufficientsystemresource|interrupt|timeout|unavailable")
_LENGTH = re.compile("length|maxtokens|maxoutput|maxcompletion|contextwindow|tokenlimit")
_FILTER = re.compile("filter|safety|sensitive|recitation|prohibited|block|guardrail|moderat|refusal|spii")
_MAX_LOGGED = 64
_log = logging.getLogger(__name__)


def read_finish_reason(said: str) -> str:
    """``stop``, ``length``, ``content_filter`` or, if it is none that is known, ``incomplete``.

    Raises:
        UpstreamInvalid: the model's call was malformed.
        UpstreamUnavailable: the answer was interrupted.
    """
    if said in _USUAL:
        return "stop"
    word = "".join(filter(str.isalnum, said.lower()))
    if _COMPLETE.fullmatch(word):
        return "stop"
    if _MALFORMED.search(word):
        raise UpstreamInvalid("the chat model wrote a malformed tool call", retryable=True)
    if _INTERRUPTED.search(word):
        raise UpstreamUnavailable("the chat provider reported a failure of its own")
    if _LENGTH.search(word):
        return "length"
    if _FILTER.search(word):
        return "content_filter"
    _log.warning("the chat provider ended its answer for an unknown reason", extra={"reason": said[:_MAX_LOGGED]})
    return "incomplete"
