"""What the tests of traces share: a model to be traced, and a trace as lines that one can read."""

from collections.abc import Sequence
from typing import Any

from tests.players.openai_player import Answer, PlayedRequest, delta, sensible_model, sse, whole
from tests.players.otlp_receiver import Received

__all__ = ["PATH", "play", "the", "tree"]

PATH = "/time/chat-tool-function"
_SENSIBLE = sensible_model({"timeZoneId": "Asia/Shanghai"})
_FIXED = {
    "failing": whole({"error": {"message": "sorry"}}, 500),
    "wrong key": whole({"error": {"message": "no"}}, 401),
    "cut": sse(delta(role="assistant", content="He"), done=False, ending="cut"),
    "silent": sse(done=False, ending="hang"),
}


def play(request: PlayedRequest) -> Answer:
    """A sensible model, but for some questions."""
    asked: Any = next(each["content"] for each in reversed(request.body["messages"]) if each["role"] == "user")
    return _FIXED.get(asked) or _SENSIBLE(request)


def tree(spans: Sequence[Received]) -> list[str]:
    """The spans in the order in which they began, each as far to the right as it is deep."""
    by_id = {each.id: each for each in spans}

    def depth(span: Received) -> int:
        return 1 + depth(by_id[span.parent]) if span.parent in by_id else 0

    return ["  " * depth(each) + str(each) for each in sorted(spans, key=lambda each: (each.began, depth(each)))]


def the(spans: Sequence[Received], name: str) -> Received:
    """The one span of a name."""
    [found] = [each for each in spans if each.name.startswith(name)]
    return found
