"""The forms in which models wrote calls as text, as people reported them; the calls in them are always the same."""

from typing import Any, NamedTuple

_GITHUB = "https://github.com/"
_VLLM = "vllm-project/vllm/blob/main/tests/tool_parsers/test_"
_LM_STUDIO = "lmstudio-ai/lmstudio-bug-tracker/issues/"
_WEATHER, _TIME = ("get_weather", {"city": "Tokyo"}), ("get_time", {"timezone": "Asia/Tokyo"})


class Leak(NamedTuple):
    """What a model wrote, where that was reported, and the calls that it meant."""

    source: str
    text: str

    @property
    def calls(self) -> list[tuple[str, dict[str, Any]]]:
        return [_WEATHER, _TIME] if "get_time" in self.text else [_WEATHER]


_JSON = '{"name": "get_weather", "arguments": {"city": "Tokyo"}}'
_LLAMA = '{"name": "get_weather", "parameters": {"city": "Tokyo"}}'
_BOTH = f'[{_JSON}, {{"name": "get_time", "arguments": {{"timezone": "Asia/Tokyo"}}}}]'
_SWAPPED = (
    '[{"arguments": {"city": "Tokyo"}, "name": "get_weather"}, '
    '{"arguments": {"timezone": "Asia/Tokyo"}, "name": "get_time"}]'
)
_KIMI = "<|tool_calls_section_begin|>{}<|tool_calls_section_end|>"
_DEEPSEEK = "<｜tool▁calls▁begin｜>{}<｜tool▁calls▁end｜>"
_FORMS = [
    # Qwen2.5-Coder at Ollama, llama.cpp and kronk: bare or fenced JSON
    ("ollama/ollama/issues/12174", _JSON),
    ("Gitlawb/openclaude/issues/433", '{\n  "name": "get_weather",\n  "arguments": {\n    "city": "Tokyo"\n  }\n}'),
    ("ardanlabs/kronk/pull/950", f"```json\n{_JSON}\n```"),
    ("webbrain-one/webbrain/pull/2689", _BOTH.replace(" ", "")),
    (
        f"{_VLLM}qwen25_coder_tool_parser.py",
        "<tools>\n" + "}\n</tools>\n<tools>\n".join(_BOTH[1:-1].split("}, ")) + "\n</tools>",
    ),
    # Llama: JSON with "parameters", tags and python tags
    ("raullenchai/Rapid-MLX/issues/700", _LLAMA),
    ("waybarrios/vllm-mlx/pull/580", _LLAMA.replace("{", '{"type": "function", ', 1)),
    ("vllm-project/vllm/issues/16214", f"<|python_start|>{_LLAMA}<|python_end|>"),
    ("raullenchai/Rapid-MLX/pull/703", f"<|python_tag|>{_LLAMA}<|eom_id|>"),
    ("langchain-ai/langchain/pull/31440", '<function=get_weather>{"city": "Tokyo"}</function>'),
    ("tashfeenahmed/freellmapi/pull/291", '<function=get_weather={"city": "Tokyo"}</function>'),
    # Hermes and Granite: JSON between tags
    ("NousResearch/hermes-agent/pull/742", f"{_JSON}</tool_call>"),
    (f"{_VLLM}granite_tool_parser.py", f"<|tool_call|> {_SWAPPED}"),
    # Qwen3-Coder and GLM: parameters between tags
    (
        "vllm-project/vllm/issues/21571",
        "<tool_call>\n<function=get_weather>\n<parameter=city>\nTokyo\n\n\n</tool_call>",
    ),
    (
        "NousResearch/hermes-agent/pull/7628",
        "<tool_call>\n<function=get_weather>\n<parameter=city>Tokyo</parameter>\n</function>\n</tool_call>",
    ),
    (f"{_LM_STUDIO}829", "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Tokyo</arg_value>\n</tool_call>"),
    # Mistral
    ("ml-explore/mlx-lm/issues/1374", f"[TOOL_CALLS] [{_JSON}]"),
    ("ml-explore/mlx-lm/pull/1643", f'[TOOL_CALLS][{_JSON[:-1]}, "id": "abcdefghi"}}]'),
    (
        "ml-explore/mlx-lm/pull/1448",
        '[TOOL_CALLS]get_weather[ARGS]{"city": "Tokyo"}[TOOL_CALLS]get_time[ARGS]{"timezone": "Asia/Tokyo"}',
    ),
    # Firefunction
    ("ollama/ollama/blob/v0.3.0/server/model_test.go", f" functools{_BOTH}"),
    # Kimi
    (
        "MoonshotAI/Kimi-K2/issues/26",
        _KIMI.format(
            "<|tool_call_begin|>functions.get_weather:1<|tool_call_argument_begin|>"
            r'"{\"city\": \"Tokyo\"}"<|tool_call_end|>'
        ),
    ),
    (
        "vybestack/llxprt-code/issues/749",
        _KIMI.format(
            " <|tool_call_begin|> functions.get_weather:0 <|tool_call_argument_begin|> "
            '{"city": "Tokyo"} <|tool_call_end|> '
        ),
    ),
    # DeepSeek V3, V3.1 and V4
    (
        f"{_VLLM}deepseekv3_tool_parser.py",
        _DEEPSEEK.format(
            '<｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n{"city": "Tokyo"}\n```<｜tool▁call▁end｜>'
            '<｜tool▁call▁begin｜>function<｜tool▁sep｜>get_time\n```json\n{"timezone": "Asia/Tokyo"}\n```'
            "<｜tool▁call▁end｜>"
        ),
    ),
    (
        "vllm-project/vllm/pull/23454",
        _DEEPSEEK.format('<｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{"city": "Tokyo"}<｜tool▁call▁end｜>'),
    ),
    (
        "sgl-project/sglang/issues/35736",
        '<｜DSML｜tool_calls>\n<｜DSML｜invoke name="get_weather">\n<｜DSML｜parameter name="city" string="true">Tokyo'
        "</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>",
    ),
    # MiniMax
    (
        "earendil-works/pi/issues/368",
        '<minimax:tool_call>\n<invoke name="get_weather">\n<parameter name="city">Tokyo</parameter>\n</invoke>\n'
        '<invoke name="get_time">\n<parameter name="timezone">Asia/Tokyo</parameter>\n</invoke>\n</minimax:tool_call>',
    ),
    (f"{_LM_STUDIO}1177", '[TOOL_CALL] { "tool": "get_weather", "args": { "city": "Tokyo" } } [/TOOL_CALL]'),
    # LM Studio's own format, and Qwen2.5-Coder behind llama.cpp, which doubles the braces of its template
    ("lmstudio-ai/mlx-engine/issues/97", f"[TOOL_REQUEST]\n{_JSON}\n[END_TOOL_REQUEST]"),
    ("https://huggingface.co/Qwen/Qwen2.5-Coder-1.5B-Instruct", f"{{{_JSON}}}"),
    ("https://huggingface.co/Qwen/Qwen2.5-Coder-1.5B-Instruct", _JSON.replace("{", "{{").replace("}", "}}")),
    (
        "respawn-llc/kent/issues/45",
        '{"tool_uses": [{"recipient_name": "functions.get_weather", "parameters": {"city": "Tokyo"}}]}',
    ),
]
LEAKS = [Leak(source if source.startswith("http") else _GITHUB + source, text) for source, text in _FORMS]
