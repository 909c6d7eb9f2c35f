"""The check of a chaos run finds what was lost, doubled, invented or read out of order."""

import time

import pytest

from tests.faults.history import Session, remembering


@pytest.mark.parametrize(
    ("kept", "found"),
    [
        (["a", "b"], ""),
        (["a"], "lost: b"),
        (["a", "b", "b"], "kept twice: b"),
        (["a", "b", "c"], ""),
        (["a", "b", "x"], "invented: x"),
        (["b", "a"], "out of order: b before a"),
        (["a", "c", "b"], "read something else: b after"),
    ],
    ids=" ".join,
)
def test_a_history_is_right_when_one_order_of_turns_explains_it(kept: list[str], found: str) -> None:
    # The turns a and b were acknowledged, b after a; c may have happened or not.
    said = {name: answer(texts) for name, texts in {"a": ["a"], "b": ["a", "b"], "c": ["a", "b", "c"]}.items()}
    session = Session("s")
    for name in ("a", "b"):
        session.add(name, time.monotonic(), said[name])
    session.add("c", time.monotonic(), None)
    messages = [
        {"role": role, "text": text}
        for name in kept
        for role, text in (("user", name), ("assistant", said.get(name, "x")))
    ]
    faults = session.faults(messages)
    assert any(each.startswith(found) for each in faults) if found else faults == []


@pytest.mark.parametrize(("read", "faults"), [([], 0), (["a"], 0), (["x"], 1)])
def test_an_answer_that_waited_for_approval_has_read_the_turns_before_its_pause(read: list[str], faults: int) -> None:
    session = Session("s")
    sent = time.monotonic()
    session.add("a", sent, answer(["a"]))
    session.add("b", sent, answer([*read, "b"]), paused=True)
    texts = ["a", answer(["a"]), "b", answer([*read, "b"])]
    messages = [{"role": ("user", "assistant")[at % 2], "text": text} for at, text in enumerate(texts)]
    assert len(session.faults(messages)) == faults


def answer(texts: list[str]) -> str:
    return remembering({"messages": [{"role": "user", "content": text} for text in texts]})
