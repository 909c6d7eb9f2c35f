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
CALLS = AssistantMessage("", (ToolCall("1", "draw", "{}"), ToolCall("2", "look", "{}")))
TOLD = "What draw has returned:"


def by_completions(messages: tuple[Message, ...], profile: Profile) -> Any:
    return from_json(write_messages(messages, (), profile))


def by_responses(messages: tuple[Message, ...], profile: Profile) -> Any:
    return ResponsesWire().body("m", Prompt(messages), ChatOptions(), profile)["input"]


def by_dashscope(messages: tuple[Message, ...], profile: Profile) -> Any:
    return map_messages(messages, (), profile, partial(map_message, parts=parts))


def test_chat_completions_have_parts_and_images_of_tools_behind_all_results() -> None:
    picture = {"type": "image_url", "image_url": {"url": URL}}
    asked, _, drawn, seen, shown = by_completions((ASKED, CALLS, DRAWN), Profile(images=True))
    assert asked["content"] == [{"type": "text", "text": "What is it?"}, picture]
    assert [each["role"] for each in (drawn, seen, shown)] == ["tool", "tool", "user"]
    assert (drawn["content"], shown["content"]) == ("a house", [{"type": "text", "text": TOLD}, picture])


def test_responses_have_images_within_results() -> None:
    picture = {"type": "input_image", "image_url": URL}
    asked, *_, drawn, seen = by_responses((ASKED, CALLS, DRAWN), Profile(images=True))
    assert asked["content"] == [{"type": "input_text", "text": "What is it?"}, picture]
    assert drawn["output"] == [{"type": "input_text", "text": "a house"}, picture]
    assert seen["output"] == "seen"


def test_dashscope_has_images_at_its_multimodal_endpoint() -> None:
    asked, _, drawn, seen, shown = by_dashscope((ASKED, CALLS, DRAWN), Profile(images=True))
    assert asked["content"] == [{"text": "What is it?"}, {"image": URL}]
    assert (drawn["content"], seen["content"]) == ("a house", "seen")
    assert shown["content"] == [{"text": TOLD}, {"image": URL}]


@pytest.mark.parametrize("written", [by_completions, by_responses, by_dashscope])
def test_models_without_images_receive_a_note(written: Any) -> None:
    asked, *_, drawn, seen = written((ASKED, CALLS, DRAWN), Profile())
    assert asked["content"] == "What is it?\n[image left out]"
    assert drawn.get("output", drawn.get("content")) == "a house\n[image left out]"
    assert seen.get("output", seen.get("content")) == "seen"


@pytest.mark.parametrize(
    ("base_url", "model", "images"),
    [
        ("https://api.openai.com/v1", "gpt-5", True),
        ("https://generativelanguage.googleapis.com/v1beta/openai", "gemini-2.5-flash", True),
        ("https://gateway.example/v1", "anthropic/claude-sonnet-4", True),
        ("https://dashscope.aliyuncs.com/compatible-mode/v1", "qwen3-vl-plus", True),
        ("https://dashscope.aliyuncs.com/compatible-mode/v1", "qwen-plus", False),
        ("http://localhost:11434/v1", "qwen2.5-vl:7b", True),
        ("http://localhost:11434/v1", "qwen3", False),
        ("https://api.deepseek.com", "deepseek-chat", False),
    ],
)
def test_what_is_known_of_models(base_url: str, model: str, images: bool) -> None:
    assert find_profile(base_url, model).images is images


@pytest.mark.parametrize(
    ("url", "is_one"),
    [
        (URL, True),
        ("http://a.example/b", True),
        *((f"data:image/{kind};base64,AA==", True) for kind in ("png", "jpeg", "gif", "webp")),
        ("data:image/svg+xml;base64,AA==", False),
        ("data:image/png,AA", False),
        ("file:///etc/passwd", False),
        ("https://a.example/b c", False),
        ("https://a.example/\n", False),
        (f"https://a.example/{'a' * 2049}", False),
        ("", False),
    ],
)
def test_what_is_an_image(url: str, is_one: bool) -> None:
    assert is_image(url) is is_one


def test_an_image_counts_as_many_tokens_as_a_page() -> None:
    assert estimate_size((ASKED,)) - estimate_size((UserMessage("What is it?"),)) == 800
    assert estimate_size((DRAWN,)) > 800
