"""Requests as chat pages send them, put together from their sources and from what their users have logged.

Open WebUI: ``backend/open_webui/routers``; LibreChat: danny-avila/LibreChat#9436; Cherry Studio: CherryHQ/cherry-studio
#8708, #10416, #10820 and #11652; Continue: its OpenAI adapters.
"""

from typing import Any

import pytest

from tests.api.openai_wire.asking import chunks_of, completion, error_of, played, streamed, user
from tests.players.openai_player import delta, finish, message, sse, whole

PARTS = {"role": "user", "content": [{"type": "text", "text": "现在几点？"}]}
PAGES: dict[str, dict[str, Any]] = {
    "open webui": {
        "model": "toolchat",
        "stream": True,
        "messages": [{"role": "system", "content": "User Context:\n\nNone"}, user("现在几点？")],
        "metadata": {"chat_id": "c", "message_id": "m", "features": {"web_search": False}},
    },
    "librechat": {
        "model": "toolchat",
        "user": "68906998cc83815dd7244885",
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": 1,
        "top_p": 1,
        "presence_penalty": 0,
        "frequency_penalty": 0,
        "stop": None,
        "n": 1,
        "messages": [user("现在几点？")],
    },
    "cherry studio": {
        "model": "toolchat",
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": 1,
        "topP": 1,
        "thinking": {"type": "enabled", "budget_tokens": 4096},
        "enable_thinking": True,
        "providerOptions": {},
        "messages": [
            user("你好"),
            {"role": "assistant", "content": "你好！", "reasoning_content": "A greeting."},
            PARTS,
        ],
    },
    "continue": {
        "model": "toolchat",
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": 4096,
        "parallel_tool_calls": False,
        "prediction": None,
        "messages": [{"role": "system", "content": "<important_rules>\n</important_rules>"}, PARTS],
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "builtin_read_file",
                    "description": "View the contents of an existing file.",
                    "parameters": {
                        "type": "object",
                        "required": ["filepath"],
                        "properties": {"filepath": {"type": "string", "description": "The path of the file"}},
                    },
                    "strict": False,
                },
            }
        ],
    },
}


@pytest.mark.parametrize("page", PAGES)
async def test_what_a_page_sends_is_answered(page: str) -> None:
    async with played([sse(delta(content="五点"), finish("stop"))]) as (client, player):
        answer = await streamed(client, **PAGES[page])
    *chunks, done = chunks_of(answer.text)
    assert "".join(each["choices"][0]["delta"].get("content", "") for each in chunks if each["choices"]) == "五点"
    assert done == "[DONE]"
    sent = player.requests[0].body
    assert sent["messages"][-1] == user("现在几点？")
    known = {"model", "messages", "stream", "stream_options", "tools", "temperature", "top_p", "max_tokens"}
    assert set(sent) <= known | {"presence_penalty", "frequency_penalty", "parallel_tool_calls"}
    assert all("reasoning_content" not in each for each in sent["messages"])  # it belonged to a turn that is over


async def test_a_title_is_written_without_tools() -> None:
    # As Open WebUI asks for titles, tags and what to ask next.
    body = {
        "model": "toolchat-plain",
        "messages": [user("### Task:\nGenerate a concise title")],
        "stream": False,
        "max_completion_tokens": 1000,
        "metadata": {"task": "title_generation", "task_body": {}, "chat_id": None},
    }
    async with played([whole(message(content='{"title":"Time"}'))]) as (client, player):
        document = await completion(client, **body)
    assert document["choices"][0]["message"]["content"] == '{"title":"Time"}'
    assert "tools" not in player.requests[0].body
    assert player.requests[0].body["max_tokens"] == 1000


async def test_a_tool_that_is_no_function_is_named_and_not_dropped() -> None:
    # As LibreChat sends what its users add for Google.
    async with played([]) as (client, _):
        answer = await streamed(client, stream=False, tools=[{"googleSearch": {}}])
    assert error_of(answer) == (400, "invalid_value", "tools[0].function")
