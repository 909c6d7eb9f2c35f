"""Images of users and of tools: how each API has them, and what models without images receive."""

from functools import partial
from typing import Any

import pytest
from pydantic_core import from_json

from toolchat.messages import (
    AssistantMessage,
    Message,
    ToolCall,
    ToolResponse,
    ToolResponseMessage,
    UserMessage,
    estimate_size,
    is_image,
)
from toolchat.models.base import ChatOptions, Prompt
from toolchat.models.dashscope.mapping import parts
from toolchat.models.openai.mapping import map_message, map_messages, write_messages
from toolchat.models.openai.responses_wire import ResponsesWire
from toolchat.models.profiles import Profile, find_profile

URL = "https://a.example/b.png"
ASKED = UserMessage("What is it?", (URL,))
DRAWN = ToolResponseMessage((ToolResponse("1", "draw", "a house", images=(URL,)), ToolResponse("2", "look", "seen")))
TURN = (ASKED, AssistantMessage("", (ToolCall("1", "draw", "{}"), ToolCall("2", "look", "{}"))), DRAWN)
TOLD = "What draw has returned:"


def by_completions(messages: tuple[Message, ...], profile: Profile) -> Any:
    return from_json(write_messages(messages, (), profile))


def by_responses(messages: tuple[Message, ...], profile: Profile) -> Any:
    return ResponsesWire().body("m", Prompt(messages), ChatOptions(), profile)["input"]


def by_dashscope(messages: tuple[Message, ...], profile: Profile) -> Any:
    return map_messages(messages, (), profile, partial(map_message, parts=parts))


@pytest.mark.parametrize(
    ("written", "text", "picture"),
    [
        (by_completions, lambda text: {"type": "text", "text": text}, {"type": "image_url", "image_url": {"url": URL}}),
        (by_dashscope, lambda text: {"text": text}, {"image": URL}),
    ],
)
def test_images_are_parts_and_those_of_tools_follow_all_results(written: Any, text: Any, picture: Any) -> None:
    asked, _, drawn, seen, shown = written(TURN, Profile(images=True))
    assert asked["content"] == [text("What is it?"), picture]
    assert [each["role"] for each in (drawn, seen, shown)] == ["tool", "tool", "user"]
    assert (drawn["content"], shown["content"]) == ("a house", [text(TOLD), picture])


def test_responses_have_images_within_results() -> None:
    picture = {"type": "input_image", "image_url": URL}
    asked, *_, drawn, seen = by_responses(TURN, Profile(images=True))
    assert asked["content"] == [{"type": "input_text", "text": "What is it?"}, picture]
    assert drawn["output"] == [{"type": "input_text", "text": "a house"}, picture]
    assert seen["output"] == "seen"


@pytest.mark.parametrize("written", [by_completions, by_responses, by_dashscope])
def test_models_without_images_receive_a_note(written: Any) -> None:
    asked, *_, drawn, seen = written(TURN, Profile())
    assert asked["content"] == "What is it?\n[image left out]"
    assert drawn.get("output", drawn.get("content")) == "a house\n[image left out]"
    assert seen.get("output", seen.get("content")) == "seen"


@pytest.mark.parametrize(
    ("host", "model", "images"),
    [
        ("api.openai.com", "gpt-5", True),
        ("gateway.example", "anthropic/claude-sonnet-4", True),
        ("dashscope.aliyuncs.com/compatible-mode", "qwen3-vl-plus", True),
        ("dashscope.aliyuncs.com/compatible-mode", "qwen-plus", False),
        ("localhost:11434", "qwen2.5-vl:7b", True),
        ("localhost:11434", "qwen3", False),
        ("api.deepseek.com", "deepseek-chat", False),
    ],
)
def test_what_is_known_of_models(host: str, model: str, images: bool) -> None:
    assert find_profile(f"https://{host}/v1", model).images is images


IMAGES = [URL, "http://a.example/b", *(f"data:image/{kind};base64,AA==" for kind in ("png", "jpeg", "gif", "webp"))]
OTHERS = ["data:image/svg+xml;base64,AA==", "data:image/png,AA", "file:///etc/passwd", "https://a.example/b c", ""]
OTHERS += ["https://a.example/\n", f"https://a.example/{'a' * 2049}"]


@pytest.mark.parametrize("url", [*IMAGES, *OTHERS])
def test_what_is_an_image(url: str) -> None:
    assert is_image(url) is (url in IMAGES)


def test_an_image_counts_as_many_tokens_as_a_page() -> None:
    assert estimate_size((ASKED,)) - estimate_size((UserMessage("What is it?"),)) == 800
    assert estimate_size((DRAWN,)) > 800
