"""What each provider gets: fields of the model's messages, ids of calls, and names of the request's fields."""

from typing import Any

import pytest
from pydantic_core import from_json, to_json

from toolchat.messages import AssistantMessage, Message, ToolCall, ToolResponse, ToolResponseMessage, Usage, UserMessage
from toolchat.models.base import ChatOptions, ChatResponse, Prompt
from toolchat.models.openai.mapping import ChatCompletionsWire, write_messages
from toolchat.models.openai.responses_wire import ResponsesWire
from toolchat.models.profiles import find_profile

DEEPSEEK, KIMI, MISTRAL = "https://api.deepseek.com", "https://api.moonshot.cn/v1", "https://api.mistral.ai/v1"
OPENAI, AZURE = "https://api.openai.com/v1", "https://team.openai.azure.com/openai/v1"
GROQ, CEREBRAS = "https://api.groq.com/openai/v1", "https://api.cerebras.ai/v1"
GEMINI = "https://generativelanguage.googleapis.com/v1beta/openai"
OPENROUTER, GLM, MINIMAX = "https://openrouter.ai/api/v1", "https://api.z.ai/api/paas/v4", "https://api.minimax.io/v1"
DASHSCOPE, LOCAL = "https://dashscope.aliyuncs.com/compatible-mode/v1", "http://localhost:11434/v1"
ID = "call_00_QvDsKrCd1hYE5cn8wbTRnUoG"
THOUGHT, EMPTY, BLANK = ({"reasoning_content": each} for each in ("Look it up.", "", " "))
WHY = {"reasoning": "why"}
BLOCKS = {"thinking_blocks": [{"type": "thinking", "thinking": "Look it up.", "signature": "EqoBCkgIARABGAIiQL2UoU"}]}
SIGNATURE = {"extra_content": {"google": {"thought_signature": "AY89a18IwQsQ8in"}}}
NO_SIGNATURE = {"extra_content": {"google": {"thought_signature": "skip_thought_signature_validator"}}}
DETAILS = {"reasoning_details": [{"type": "reasoning.text", "text": "Look it up.", "index": 0}]}


def asked(extra: dict[str, Any], url: str, model: str, call: dict[str, Any] | None = None) -> AssistantMessage:
    """A call as the model of that name at that address has made it."""
    message = AssistantMessage("", (ToolCall(ID, "now", "{}", call or {}),), extra)
    return find_profile(url, model).signed(ChatResponse(message, "stop", Usage(), model)).message


def sent(message: AssistantMessage, url: str, model: str, *, later: bool = False) -> dict[str, Any]:
    """The message with that call as it goes back, in its round or with the question after its turn."""
    turn: tuple[Message, ...] = (UserMessage("hi"), message, ToolResponseMessage((ToolResponse(ID, "now", "12:00"),)))
    asked_again = (AssistantMessage("It is 12:00."), UserMessage("and now?")) if later else ()
    messages: list[dict[str, Any]] = from_json(write_messages((*turn, *asked_again), (), find_profile(url, model)))
    return messages[1]


def fields(message: dict[str, Any], *known: str) -> dict[str, Any]:
    return {key: message[key] for key in message.keys() - set(known)}


@pytest.mark.parametrize(
    ("url", "model", "extra", "now", "later"),
    [
        # https://api-docs.deepseek.com/guides/thinking_mode
        (DEEPSEEK, "deepseek-v4-pro", THOUGHT, THOUGHT, THOUGHT),
        # https://github.com/deepseek-ai/deepseek-harness/discussions/739
        (DEEPSEEK, "deepseek-v4-pro", EMPTY, EMPTY, EMPTY),
        # https://github.com/BerriAI/litellm/pull/28057
        (DEEPSEEK, "deepseek-v4-pro", {}, BLANK, BLANK),
        # https://github.com/continuedev/continue/issues/11711
        (KIMI, "kimi-k2.5", THOUGHT, THOUGHT, THOUGHT),
        # https://github.com/Lapis0x0/obsidian-yolo/pull/243
        (KIMI, "kimi-k2.5", {}, BLANK, BLANK),
        # https://github.com/charmbracelet/crush/issues/1590
        (MISTRAL, "mistral-large-latest", THOUGHT, {}, {}),
        # https://github.com/janhq/jan/issues/8136
        (GROQ, "openai/gpt-oss-120b", THOUGHT, {}, {}),
        (GROQ, "openai/gpt-oss-120b", WHY, WHY, {}),
        # https://github.com/NousResearch/hermes-agent/pull/34760, https://github.com/QwenLM/qwen-code/issues/11045
        (CEREBRAS, "zai-glm-4.7", THOUGHT, {}, {}),
        (CEREBRAS, "qwen-3.8-27b", WHY, WHY, {}),
        # https://ai.google.dev/gemini-api/docs/thought-signatures
        (GEMINI, "gemini-2.5-pro", SIGNATURE, SIGNATURE, SIGNATURE),
        # https://openrouter.ai/docs/use-cases/reasoning-tokens
        (OPENROUTER, "moonshotai/kimi-k2.5", DETAILS, DETAILS, DETAILS),
        (OPENROUTER, "anthropic/claude-sonnet-4.5", WHY, WHY, WHY),
        # https://docs.z.ai/guides/capabilities/thinking-mode
        (GLM, "glm-4.7", THOUGHT, THOUGHT, THOUGHT),
        # https://platform.minimax.io/docs/guides/text-m2-function-call
        (MINIMAX, "MiniMax-M2", DETAILS, DETAILS, DETAILS),
        # https://github.com/anomalyco/opencode/issues/3077
        ("http://litellm:4000/v1", "claude-4-5-sonnet", BLOCKS, BLOCKS, BLOCKS),
        # The rule: https://docs.vllm.ai/en/v0.17.1/features/interleaved_thinking/
        (LOCAL, "qwen3", THOUGHT, THOUGHT, {}),
        (LOCAL, "qwen3", {}, {}, {}),
        (DASHSCOPE, "qwen3-32b", THOUGHT, THOUGHT, {}),
    ],
)
def test_fields_of_the_models_messages_go_back_as_the_provider_wants(
    url: str, model: str, extra: dict[str, Any], now: dict[str, Any], later: dict[str, Any]
) -> None:
    message = asked(extra, url, model)
    back = [fields(sent(message, url, model, later=each), "role", "content", "tool_calls") for each in (False, True)]
    assert back == [now, later]


@pytest.mark.parametrize(
    ("url", "model", "expected"),
    [
        (MISTRAL, "mistral-large-latest", {}),  # https://github.com/charmbracelet/crush/issues/1590
        (GROQ, "llama-3.3-70b", {}),  # https://github.com/tashfeenahmed/freellmapi/issues/1070
        (OPENAI, "gpt-4o", {}),
        (LOCAL, "qwen3", {}),
        (DEEPSEEK, "deepseek-v4-flash", BLANK),  # https://github.com/Astro-Han/pawwork/pull/261
    ],
)
@pytest.mark.parametrize("extra", [THOUGHT, SIGNATURE, DETAILS, BLOCKS])
def test_another_model_gets_none_of_the_fields(
    url: str, model: str, expected: dict[str, Any], extra: dict[str, Any]
) -> None:
    back = sent(asked(extra, DEEPSEEK, "deepseek-v4-pro", {"index_hint": 1}), url, model)
    assert fields(back, "role", "content", "tool_calls") == expected
    assert back["tool_calls"][0].keys() == {"id", "type", "function"}


@pytest.mark.parametrize(
    ("url", "model", "call", "expected"),
    [
        (GEMINI, "gemini-3-pro-preview", SIGNATURE, SIGNATURE),
        (GEMINI, "gemini-3-pro-preview", {}, NO_SIGNATURE),  # https://ai.google.dev/gemini-api/docs/thought-signatures
        (GEMINI, "gemini-2.5-pro", {}, {}),
        (MISTRAL, "devstral-medium", SIGNATURE, {}),
    ],
)
@pytest.mark.parametrize("later", [False, True])
def test_fields_of_calls_go_back_in_every_turn(
    url: str, model: str, call: dict[str, Any], expected: dict[str, Any], later: bool
) -> None:
    (back,) = sent(asked({}, url, model, call), url, model, later=later)["tool_calls"]
    assert fields(back, "id", "type", "function") == expected


@pytest.mark.parametrize(
    ("url", "model", "call_id", "length"),
    [
        (MISTRAL, "mistral-large-latest", ID, 9),  # https://github.com/nearai/ironclaw/issues/1241
        (MISTRAL, "mistral-large-latest", "D681PevKs", None),
        (OPENAI, "gpt-5.5", "c" * 65, 9),  # https://github.com/decolua/9router/issues/393
        (OPENAI, "gpt-5.5", "c" * 64, None),
        (AZURE, "mine", "c" * 1324, 9),  # https://github.com/openai/codex/issues/14355
        (LOCAL, "claude-opus-4-6", "functions.Bash:0", 9),  # https://github.com/BerriAI/litellm/pull/31094
        (LOCAL, "qwen3", "functions.Bash:0", None),
    ],
)
def test_an_id_that_does_not_fit_is_replaced_in_calls_and_results(
    url: str, model: str, call_id: str, length: int | None
) -> None:
    call, results = ToolCall(call_id, "now", "{}"), ToolResponseMessage((ToolResponse(call_id, "now", "12:00"),))
    messages, profile = (UserMessage("hi"), AssistantMessage("", (call,)), results), find_profile(url, model)
    chat = from_json(write_messages(messages, (), profile))
    responses = ResponsesWire().body(model, Prompt(messages), ChatOptions(), profile)["input"]
    (found,) = {chat[1]["tool_calls"][0]["id"], chat[2]["tool_call_id"], *(each["call_id"] for each in responses[1:])}
    assert found.isalnum() and len(found) == length if length else found == call_id


@pytest.mark.parametrize(
    ("url", "model", "missing", "added"),
    [
        # https://github.com/nashsu/llm_wiki/issues/610, https://github.com/QwenLM/qwen-code/issues/921
        (OPENAI, "gpt-5-mini", {"max_tokens", "temperature"}, {"max_completion_tokens": 9}),
        (OPENAI, "o3", {"max_tokens", "temperature"}, {"max_completion_tokens": 9}),
        (AZURE, "gpt-5.4", {"max_tokens"}, {"max_completion_tokens": 9, "temperature": 0.2}),
        (OPENAI, "gpt-4o-mini", set(), {"max_tokens": 9, "temperature": 0.2}),
        # https://github.com/dnakov/anon-kode/issues/53
        (MISTRAL, "mistral-small", {"stream_options", "seed"}, {"random_seed": 7}),
        # https://platform.minimax.io/docs/guides/text-m2-function-call
        (MINIMAX, "MiniMax-M2.5", set(), {"reasoning_split": True}),
        (MINIMAX, "abab6.5", {"reasoning_split"}, {}),
        (LOCAL, "qwen3", set(), {"stream_options": {"include_usage": True}, "max_tokens": 9}),
    ],
)
def test_fields_of_the_request_have_the_names_of_the_provider(
    url: str, model: str, missing: set[str], added: dict[str, Any]
) -> None:
    profile, sampling = find_profile(url, model), ChatOptions(temperature=0.2, max_tokens=9, seed=7)
    prompt = Prompt((UserMessage("hi"),), stream=True)
    body = profile.request(ChatCompletionsWire().body(model, prompt, sampling, profile))
    assert missing.isdisjoint(body)
    assert body.items() >= added.items()


@pytest.mark.parametrize(
    ("url", "model", "expected"),
    [
        (DASHSCOPE, "qwen3-32b", True),  # https://github.com/coze-dev/coze-studio/issues/324
        ("https://dashscope-intl.aliyuncs.com/api/v1", "qwq-plus", True),
        (DASHSCOPE, "qwen-plus", False),
        (LOCAL, "qwen3-32b", False),
    ],
)
def test_who_answers_by_streams_only_is_known(url: str, model: str, expected: bool) -> None:
    assert find_profile(url, model).streams_only is expected


def test_an_override_changes_single_entries_of_a_profile() -> None:
    own = {"renamed": {"temperature": ""}, "sent_back": {"reasoning_content": "never"}, "filled": {}}
    profile = find_profile(MISTRAL, "m", own)
    assert profile.request({"temperature": 1, "seed": 7, "stream_options": {}}) == {"random_seed": 7}
    assert profile.sent_back == {"*": "never", "reasoning_content": "never"}
    assert to_json(find_profile(DEEPSEEK, "m", own).sent_back) == b'{"reasoning_content":"never"}'


def test_a_host_decides_before_a_model() -> None:
    names = [find_profile(url, "anthropic/claude-opus-4.6").name for url in (OPENROUTER, LOCAL)]
    assert [*names, find_profile(LOCAL, "qwen3").name] == ["openrouter", "anthropic", ""]


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
def test_which_models_take_images_is_known(host: str, model: str, images: bool) -> None:
    assert find_profile(f"https://{host}/v1", model).images is images
