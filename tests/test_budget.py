"""The size of the code: a package that grows beyond its line here needs a change of this table, and so a reason."""

import pytest

from tests.architecture import ROOT

BUDGET = {
    "app": 193,
    "app/places": 427,
    "app/tools": 3097,
    "toolchat": 945,
    "toolchat/chat": 2290,
    "toolchat/http": 1069,
    "toolchat/models": 3355,
    "toolchat/service": 354,
    "toolchat/service/access": 1536,
    "toolchat/service/api": 6341,
    "toolchat/service/cli": 1415,
    "toolchat/service/composition": 848,
    "toolchat/service/mcp_client": 1342,
    "toolchat/service/observability": 1347,
    "toolchat/service/offline": 1354,
    "toolchat/service/pages": 304,
    "toolchat/service/protocols": 5233,
    "toolchat/service/server": 501,
    "toolchat/service/settings": 789,
    "toolchat/service/tool_modules": 555,
    "toolchat/state": 2179,
    "toolchat/tool_calling": 4035,
}
"""Lines of Python at most, by package. They only go down, to 30,000 in all."""


def lines_of(package: str) -> int:
    """Lines of the package's own files; packages below it that have a line of their own count there."""
    own = (file for file in (ROOT / package).rglob("*.py") if owner_of(file.relative_to(ROOT).as_posix()) == package)
    return sum(file.read_text(encoding="utf-8").count("\n") for file in own)


def owner_of(file: str) -> str:
    return max((each for each in BUDGET if file.startswith(f"{each}/")), key=len)


@pytest.mark.parametrize("package", BUDGET)
def test_a_package_stays_within_its_lines(package: str) -> None:
    assert lines_of(package) <= BUDGET[package]
