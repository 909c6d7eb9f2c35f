"""How many tokens a turn took, as the provider tells it."""

import pytest

from toolchat.messages import Usage
from toolchat.models.merging import usage_from


@pytest.mark.parametrize(
    ("value", "usage"),
    [
        pytest.param({"prompt_tokens": 3, "completion_tokens": 4}, Usage(3, 4), id="OpenAI"),
        pytest.param({"input_tokens": 3, "output_tokens": 4}, Usage(3, 4), id="DashScope"),
        pytest.param({"prompt_tokens": 3, "completion_tokens": None}, Usage(3, 0), id="half"),
        pytest.param({"prompt_tokens": None}, None, id="null within"),
        pytest.param({"prompt_tokens": True, "completion_tokens": -1}, None, id="no numbers of tokens"),
        pytest.param({"prompt_tokens": 10**30, "completion_tokens": 2.5}, None, id="no numbers of tokens either"),
        pytest.param({"total_tokens": 0}, None, id="MiniMax's place holder"),
        pytest.param(None, None, id="trap 18: null"),
        pytest.param("3", None, id="text"),
    ],
)
def test_usage_is_read_in_both_spellings_and_never_guessed(value: object, usage: Usage | None) -> None:
    assert usage_from(value) == usage


@pytest.mark.parametrize(
    "told",
    [
        {
            "prompt_tokens": 20,
            "completion_tokens": 5,
            "prompt_tokens_details": {"cached_tokens": 12},
            "completion_tokens_details": {"reasoning_tokens": 3},
        },
        {
            "input_tokens": 20,
            "output_tokens": 5,
            "prompt_tokens_details": {"cached_tokens": 12},
            "output_tokens_details": {"reasoning_tokens": 3},
        },
    ],
    ids=["OpenAI", "DashScope"],
)
def test_cached_and_reasoning_tokens_are_read_if_a_provider_reports_them(told: dict[str, object]) -> None:
    assert usage_from(told) == Usage(20, 5, 12, 3)


@pytest.mark.parametrize("details", [None, [], {}, {"cached_tokens": "12"}, {"cached_tokens": -1}])
def test_usage_details_without_counts_are_ignored(details: object) -> None:
    assert usage_from({"prompt_tokens": 20, "completion_tokens": 5, "prompt_tokens_details": details}) == Usage(20, 5)


def test_the_tokens_of_several_turns_are_summed() -> None:
    assert Usage(20, 5, 12, 3) + Usage(30, 6, 0, 1) == Usage(50, 11, 12, 4)
