"""Questions that are proposed to begin with: those that the model of the service answers by a tool."""

from pathlib import Path
from typing import Any

import pytest

from tests.serving import service

TOOL = '''
from toolchat import ToolModule, tool


@tool(read_only=True)
async def {name}({parameter}) -> str:
    """Search the {name} of the shop."""
    return "Within 30 days."


module = ToolModule(functions=({name},), default_query={question!r})
'''
REFUSED = "Hello there"


@pytest.fixture
def tools(tmp_path: Path) -> str:
    for name, question, parameter in (("faq", "Search faq: hello", "query: str"), ("letters", REFUSED, "number: int")):
        text = TOOL.format(name=f"search_{name}", question=question, parameter=parameter)
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    return str(tmp_path)


async def questions(**variables: str) -> dict[str, Any]:
    async with service(**variables) as client:
        return {each["name"]: each["questions"] for each in (await client.get("/tools")).json()}


async def test_a_question_that_the_offline_model_refuses_gives_way_to_one_that_it_answers(tools: str) -> None:
    proposed = await questions(TOOLS_PATH=tools)
    assert list(proposed)[:2] == ["faq", "letters"]  # those of the application follow
    assert proposed["faq"] == ["Search faq: hello"]
    assert proposed["letters"]
    assert REFUSED not in proposed["letters"]
    assert proposed["todo"] == [
        "帮我计划：查北京时间，再查东京时间",
        "Plan: check the time in Paris; check the time in Tokyo",
    ]
    assert proposed["weather"] == []


async def test_a_real_model_is_asked_every_declared_question(tools: str) -> None:
    proposed = await questions(TOOLS_PATH=tools, OPENAI_BASE_URL="http://127.0.0.1:9")
    assert proposed["letters"] == [REFUSED]
