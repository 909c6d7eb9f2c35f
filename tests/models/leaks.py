"""Calls that models wrote as text, as people reported them.

Where a report shows the form alone, without names and arguments, those of other rows stand in it.
"""

from typing import Any, NamedTuple

__all__ = ["LEAKS", "Leak"]

_GITHUB = "https://github.com/"
_VLLM_TESTS = _GITHUB + "vllm-project/vllm/blob/main/tests/tool_parsers/"


class Leak(NamedTuple):
    """What a model wrote, where that was reported, and the calls that it meant."""

    source: str
    text: str
    calls: list[tuple[str, dict[str, Any]]]


_CITY = {"city": "Tokyo"}
_ZONE = {"timezone": "Asia/Tokyo"}
_KIMI = "<|tool_calls_section_begin|>{}<|tool_calls_section_end|>"
_DEEPSEEK = "<｜tool▁calls▁begin｜>{}<｜tool▁calls▁end｜>"


def _leak(source: str, text: str, *calls: tuple[str, dict[str, Any]]) -> Leak:
    return Leak(source if source.startswith("http") else _GITHUB + source, text, list(calls))


LEAKS = [
    # Qwen2.5-Coder at Ollama, oMLX, llama.cpp and kronk: bare or fenced JSON
    _leak(
        "ollama/ollama/issues/12174",
        '{"name": "calculator", "arguments": {"expr": "17 * 23"}}',
        ("calculator", {"expr": "17 * 23"}),
    ),
    _leak(
        "irreg/native_tool_call_adapter/issues/3",
        '{\n"name": "attempt_completion",\n"arguments": {\n"result": "Result text here"\n}\n}',
        ("attempt_completion", {"result": "Result text here"}),
    ),
    _leak(
        "Gitlawb/openclaude/issues/433",
        '{\n  "name": "WebSearch",\n  "arguments": {\n    "query": "repository structure"\n  }\n}',
        ("WebSearch", {"query": "repository structure"}),
    ),
    _leak(
        "selfagency/opilot/issues/149",
        '{\n"name": "fetch_file_content",\n"arguments": {\n"filePath": "/my/code/test-project/AGENTS.md"\n}\n}',
        ("fetch_file_content", {"filePath": "/my/code/test-project/AGENTS.md"}),
    ),
    _leak(
        "continuedev/continue/issues/7363",
        '{"name": "read_file", "arguments": {"filepath": "packages"}}',
        ("read_file", {"filepath": "packages"}),
    ),
    _leak(
        "ardanlabs/kronk/pull/950",
        '```json\n{"name": "get_weather", "arguments": {"location": "Paris"}}\n```',
        ("get_weather", {"location": "Paris"}),
    ),
    _leak(
        "BerriAI/litellm/issues/21242",
        '{"name": "repo_browser.open_file", "arguments": {\n  "path": "analysis",\n  "line_start": 1,\n'
        '  "line_end": 200\n}}',
        ("repo_browser.open_file", {"path": "analysis", "line_start": 1, "line_end": 200}),
    ),
    _leak(
        "webbrain-one/webbrain/pull/2689",
        '[{"name":"read_page","arguments":{}},{"name":"click","arguments":{"text":"Go"}}]',
        ("read_page", {}),
        ("click", {"text": "Go"}),
    ),
    _leak(
        _VLLM_TESTS + "test_qwen25_coder_tool_parser.py",
        '<tools>\n{"name": "get_weather", "arguments": {"city": "Tokyo"}}\n</tools>\n'
        '<tools>\n{"name": "search_web", "arguments": {"query": "London events"}}\n</tools>',
        ("get_weather", _CITY),
        ("search_web", {"query": "London events"}),
    ),
    # Llama: JSON with "parameters", tags and python tags
    _leak(
        "jundot/omlx/pull/1153",
        '{"name": "get_weather", "parameters": {"location": "Paris"}}',
        ("get_weather", {"location": "Paris"}),
    ),
    _leak(
        "raullenchai/Rapid-MLX/issues/700",
        '{"name": "web_search", "parameters": {"query": "你好"}}',
        ("web_search", {"query": "你好"}),
    ),
    _leak(
        "waybarrios/vllm-mlx/pull/580",
        '{"type": "function", "name": "read_file", "parameters": {"path": "foo.py"}}',
        ("read_file", {"path": "foo.py"}),
    ),
    _leak(
        "vllm-project/vllm/issues/16214",
        '<|python_start|>{"name": "brave_web_search", "parameters": {"query": "latest news"}}<|python_end|>',
        ("brave_web_search", {"query": "latest news"}),
    ),
    _leak(
        "raullenchai/Rapid-MLX/pull/703",
        '<|python_tag|>{"name": "web_search", "parameters": {"query": "你好"}}<|eom_id|>',
        ("web_search", {"query": "你好"}),
    ),
    _leak(
        "langchain-ai/langchain/pull/31440",
        '<function=brave_search>{"query": "Hello!"}</function>',
        ("brave_search", {"query": "Hello!"}),
    ),
    _leak(
        "tashfeenahmed/freellmapi/pull/291",
        '<function=read={"file_path": "sample.txt"}</function>',
        ("read", {"file_path": "sample.txt"}),
    ),
    # Hermes, Step and Granite: JSON between tags
    _leak(
        "NousResearch/hermes-agent/pull/742",
        '{"name": "get_weather", "arguments": {"city": "Tokyo"}}</tool_call>',
        ("get_weather", _CITY),
    ),
    _leak(
        _VLLM_TESTS + "test_granite_tool_parser.py",
        '<|tool_call|> [\n  {"name": "get_weather", "arguments": {"city": "Tokyo"}},\n'
        '  {"name": "get_time", "arguments": {"timezone": "Asia/Tokyo"}}\n]',
        ("get_weather", _CITY),
        ("get_time", _ZONE),
    ),
    _leak(
        _VLLM_TESTS + "test_granite_tool_parser.py",
        '<|tool_call|> [{"arguments": {"city": "Tokyo"}, "name": "get_weather"}, '
        '{"arguments": {"timezone": "Asia/Tokyo"}, "name": "get_time"}]',
        ("get_weather", _CITY),
        ("get_time", _ZONE),
    ),
    # Qwen3-Coder and GLM: parameters between tags
    _leak(
        "vllm-project/vllm/issues/21571",
        "<tool_call>\n<function=square_the_number>\n<parameter=input_num>\n1024\n\n\n</tool_call>",
        ("square_the_number", {"input_num": "1024"}),
    ),
    _leak(
        "NousResearch/hermes-agent/pull/7628",
        "<tool_call>\n<function=read_file>\n<parameter=target_file>main.py</parameter>\n</function>\n</tool_call>",
        ("read_file", {"target_file": "main.py"}),
    ),
    _leak(
        "lmstudio-ai/lmstudio-bug-tracker/issues/2115",
        "<tool_call>\n<function=read>\n<parameter=path>\n...\n</parameter>\n</function>\n</tool_call>",
        ("read", {"path": "..."}),
    ),
    _leak(
        "lmstudio-ai/lmstudio-bug-tracker/issues/829",
        '<tool_call>\n<function=kagi_search_fetch>\n<parameter=queries>\n["keyword"]\n</parameter>\n</function>\n'
        "</tool_call>",
        ("kagi_search_fetch", {"queries": '["keyword"]'}),
    ),
    _leak(
        "lmstudio-ai/lmstudio-bug-tracker/issues/829",
        '<tool_call>kagi_search_fetch\n<arg_key>queries</arg_key>\n<arg_value>["keyword"]</arg_value>\n</tool_call>',
        ("kagi_search_fetch", {"queries": '["keyword"]'}),
    ),
    # Mistral
    _leak(
        "ml-explore/mlx-lm/issues/1374",
        '[TOOL_CALLS] [{"name": "calculator", "arguments": {"expression": "2+3"}}]',
        ("calculator", {"expression": "2+3"}),
    ),
    _leak(
        "ml-explore/mlx-lm/pull/1643",
        '[TOOL_CALLS][{"name": "read_file", "arguments": {"path": "/tmp/test.txt"}, "id": "abcdefghi"}]',
        ("read_file", {"path": "/tmp/test.txt"}),
    ),
    _leak(
        "ml-explore/mlx-lm/pull/1448",
        '[TOOL_CALLS]get_weather[ARGS]{"city": "Paris"}[TOOL_CALLS]get_weather[ARGS]{"city": "Tokyo"}',
        ("get_weather", {"city": "Paris"}),
        ("get_weather", _CITY),
    ),
    _leak(
        "raullenchai/Rapid-MLX/issues/1071",
        '[TOOL_CALLS]web_search[ARGS]{"query": "latest AI model releases this month"}',
        ("web_search", {"query": "latest AI model releases this month"}),
    ),
    # Phi and Firefunction
    _leak(
        _VLLM_TESTS + "test_phi4mini_tool_parser.py",
        'functools[{"name": "get_weather", "arguments": {"city": "Tokyo"}}]',
        ("get_weather", _CITY),
    ),
    _leak(
        "ollama/ollama/blob/v0.3.0/server/model_test.go",
        ' functools[{"name": "get_current_weather", "arguments": {"format":"fahrenheit","location":"San Francisco, '
        'CA"}},{"name": "get_current_weather", "arguments": {"format":"celsius","location":"Toronto, Canada"}}]',
        ("get_current_weather", {"format": "fahrenheit", "location": "San Francisco, CA"}),
        ("get_current_weather", {"format": "celsius", "location": "Toronto, Canada"}),
    ),
    # Kimi
    _leak(
        "MoonshotAI/Kimi-K2/issues/26",
        _KIMI.format(
            "<|tool_call_begin|>functions.TodoWrite:1<|tool_call_argument_begin|>"
            r'"{\"todos\": [{\"id\": \"transform-analysis\", \"status\": \"in_progress\"}]}"<|tool_call_end|>'
        ),
        ("TodoWrite", {"todos": [{"id": "transform-analysis", "status": "in_progress"}]}),
    ),
    _leak(
        "vybestack/llxprt-code/issues/749",
        _KIMI.format(
            " <|tool_call_begin|> functions.list_directory:0 <|tool_call_argument_begin|> "
            '{"path": "/some/path"} <|tool_call_end|> '
        ),
        ("list_directory", {"path": "/some/path"}),
    ),
    _leak(
        "Bike4Mind/bike4mind/issues/1119",
        _KIMI.format(
            " <|tool_call_begin|> functions.math_evaluate:0 <|tool_call_argument_begin|> "
            '{"expression": "384 * 27"} <|tool_call_end|> '
        ),
        ("math_evaluate", {"expression": "384 * 27"}),
    ),
    # DeepSeek V3, V3.1 and V4
    _leak(
        _VLLM_TESTS + "test_deepseekv3_tool_parser.py",
        _DEEPSEEK.format(
            '<｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n{"city": "Tokyo"}\n```<｜tool▁call▁end｜>'
            '<｜tool▁call▁begin｜>function<｜tool▁sep｜>get_time\n```json\n{"timezone": "Asia/Tokyo"}\n```'
            "<｜tool▁call▁end｜>"
        ),
        ("get_weather", _CITY),
        ("get_time", _ZONE),
    ),
    _leak(
        "vllm-project/vllm/pull/23454",
        _DEEPSEEK.format('<｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{"city": "Tokyo"}<｜tool▁call▁end｜>'),
        ("get_weather", _CITY),
    ),
    _leak(
        "sgl-project/sglang/issues/35736",
        '<｜DSML｜tool_calls>\n<｜DSML｜invoke name="Bash">\n<｜DSML｜parameter name="command" string="true">pwd'
        "</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>",
        ("Bash", {"command": "pwd"}),
    ),
    _leak(
        "NousResearch/hermes-agent/issues/119261",
        '<｜DSML｜tool_calls> <｜DSML｜invoke name="terminal"> <｜DSML｜parameter name="background" string="false">true'
        '</｜DSML｜parameter> <｜DSML｜parameter name="command" string="true">cd /Users/trusktr/src/lume+lume && npx '
        "five-server . --port 23456 --open=false</｜DSML｜parameter> </｜DSML｜invoke> </｜DSML｜tool_calls>",
        (
            "terminal",
            {
                "background": "true",
                "command": "cd /Users/trusktr/src/lume+lume && npx five-server . --port 23456 --open=false",
            },
        ),
    ),
    # MiniMax
    _leak(
        "earendil-works/pi/issues/368",
        '<minimax:tool_call>\n<invoke name="bash">\n<parameter name="command">mb --help</parameter>\n</invoke>\n'
        '<invoke name="bash">\n<parameter name="command">cm --help</parameter>\n</invoke>\n</minimax:tool_call>',
        ("bash", {"command": "mb --help"}),
        ("bash", {"command": "cm --help"}),
    ),
    _leak(
        "lmstudio-ai/lmstudio-bug-tracker/issues/1177",
        '[TOOL_CALL] { "tool": "write", "args": { "filePath": "test.html", "content": "<html>...</html>" } } '
        "[/TOOL_CALL]",
        ("write", {"filePath": "test.html", "content": "<html>...</html>"}),
    ),
    # LM Studio's own format, and Qwen2.5-Coder behind llama.cpp, which doubles the braces of its template
    _leak(
        "lmstudio-ai/mlx-engine/issues/97",
        '[TOOL_REQUEST]\n{"name": "weather_GET", "arguments": {"zoneId": "Asia/Shanghai"}}\n[END_TOOL_REQUEST]',
        ("weather_GET", {"zoneId": "Asia/Shanghai"}),
    ),
    _leak(
        "https://huggingface.co/Qwen/Qwen2.5-Coder-1.5B-Instruct",
        '{{"name": "get_weather", "arguments": {"city": "Tokyo"}}}}',
        ("get_weather", _CITY),
    ),
    _leak(
        "https://huggingface.co/Qwen/Qwen2.5-Coder-1.5B-Instruct",
        '{{"name": "get_weather", "arguments": {{"city": "Tokyo"}}}}',
        ("get_weather", _CITY),
    ),
    _leak(
        "respawn-llc/kent/issues/45",
        '{"tool_uses": [{"recipient_name": "functions.exec_command", "parameters": {"cmd": "git status"}}]}',
        ("exec_command", {"cmd": "git status"}),
    ),
]
