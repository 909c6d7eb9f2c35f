"""What OpenAPI says of an operation's errors, read as a person would."""

import re
from typing import Any


def problems_of(operation: dict[str, Any]) -> dict[int, list[str]]:
    """The codes that the one block of errors of an operation lists, by status."""
    block = operation["responses"]["default"]
    assert list(block["content"]) == ["application/problem+json"]
    listed = block["description"].removeprefix("A problem document: ").split(". What")[0].split(" · ")
    return {int(each[2:5]): re.findall(r"[a-z-]+", each) for each in listed}
