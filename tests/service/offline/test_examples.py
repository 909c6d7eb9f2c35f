"""What the offline model proposes to ask, and how it answers who only greets or asks for help."""

from pathlib import Path

import pytest

from tests.command_line import run
from tests.service.offline.asking import asked, reading_tool, response
from tests.service.offline.tools import SETS
from toolchat.messages import AssistantMessage, UserMessage
from toolchat.service.offline.replies import unanswered
from toolchat.tool_calling.callback import ToolCallback
from toolchat.tool_calling.definition import tool
from toolchat.tool_calling.function_callback import FunctionToolCallback

EXAMPLE = "How long may I keep a lamp?"


def policy(*examples: str) -> ToolCallback:
    async def policy(text: str) -> str:
        """Read about shipping."""
        return text

    return FunctionToolCallback.from_function(policy, read_only=True, examples=examples)


@pytest.mark.parametrize(
    ("question", "parts"),
    [
        ("Hi there!", ["Hello!", "offline model", "for example"]),
        ("您好", ["你好", "你可以问"]),
        ("help", ["getWeatherFunction", "getCityTimeFunction", "for example"]),
        ("What can you do?", ["getWeatherFunction"]),
        ("Which tools do you have?", ["getWeatherFunction"]),
        ("How does this work?", ["getWeatherFunction"]),
        ("Thanks, that was all.", ["You are welcome."]),
        ("Thanks, goodbye!", ["Goodbye!"]),
        ("谢谢，再见", ["再见！"]),
        ("你能做什么？", ["getWeatherFunction", "你可以问"]),
    ],
)
async def test_a_greeting_thanks_and_a_call_for_help_are_answered_in_their_language(
    question: str, parts: list[str]
) -> None:
    answer = (await response(UserMessage(question), tools=SETS["built_in"])).message.text
    assert [each for each in parts if each not in answer] == []


async def test_a_tool_answers_the_example_that_it_declares() -> None:
    assert await asked(EXAMPLE, policy(EXAMPLE)) == [("policy", {"text": EXAMPLE})]
    assert await asked(EXAMPLE, policy()) == []


async def test_an_example_of_a_tool_that_changes_something_is_no_guess() -> None:
    @tool(name="ship", examples=("Ship order 7",))
    async def ship(order: int) -> str:
        """Ship an order."""
        return str(order)

    offered = FunctionToolCallback.from_function(ship)
    assert await asked("Ship order 7", offered) == [("ship", {"order": 7})]
    assert await asked("Ship order 8", offered) == []
    assert await asked("Ship order 8, yes", offered) == [("ship", {"order": 8})]


async def test_a_search_takes_a_whole_question() -> None:
    faq = reading_tool("search_faq", "Search the FAQ about returns", "query", query={"type": "string"})
    assert await asked("How long may I return an item?", faq) == [
        ("search_faq", {"query": "How long may I return an item?"})
    ]
    assert await asked("My returns were awful", faq) == []


def test_questions_that_call_nothing_are_named() -> None:
    assert unanswered([EXAMPLE, "Who won?"], [policy(EXAMPLE)]) == ["Who won?"]


def test_check_names_a_question_that_is_refused(tmp_path: Path) -> None:
    (tmp_path / "own" / "score").mkdir(parents=True)
    (tmp_path / "own" / "score" / "__init__.py").write_text(
        "from toolchat import ToolModule\ndef score(team: int) -> int:\n    'The score of a team.'\n    return team\n"
        "module = ToolModule(functions=(score,), default_query='Who won?', examples={'a': 'Score of team 3'})\n"
    )
    told = run("check", cwd=tmp_path, TOOLS_PATH=str(tmp_path / "own"), CHAT_PROVIDER="offline").stdout
    assert [line.split(maxsplit=2)[2] for line in told.splitlines() if "cannot answer" in line] == [
        "the offline model cannot answer its question 'Who won?'"
    ]


async def test_a_long_conversation_is_read_only_as_far_as_the_question_needs() -> None:
    before = [each for n in range(30) for each in (UserMessage(f"time in Rome {n}"), AssistantMessage("?"))]
    calls = (await response(*before, UserMessage("time in Paris"), tools=SETS["time"])).message.tool_calls
    assert [each.arguments for each in calls] == ['{"timeZoneId":"Europe/Paris"}']
