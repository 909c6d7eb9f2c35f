"""One set of hidden characters: for approvals in the page and in a terminal, and for the texts of MCP servers."""

import re

from tests.command_line import ROOT
from toolchat.service.hidden_characters import HIDDEN


def test_the_page_has_the_same_set() -> None:
    page = (ROOT / "toolchat/service/pages/playground/json.js").read_text(encoding="utf-8")
    [written] = re.findall(r"^const HIDDEN = /(\[.*\])/gu;$", page, re.MULTILINE)
    of_page = re.compile(re.sub(r"\\u\{(\w+)\}", lambda code: f"\\U{code[1]:0>8}", written))
    every = [chr(number) for number in range(0x110000)]
    assert [each for each in every if HIDDEN.match(each)] == [each for each in every if of_page.match(each)]
