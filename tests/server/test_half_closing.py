"""A client that shuts its sending side counts as one that leaves: a FIN is all that is seen of either."""

import logging
from collections.abc import Sequence

import pytest

from tests.server.paced_model import PacedModel, Piece, text
from tests.server.raw_client import EVENTS, RawClient
from tests.server.watching import assert_nothing_was_reported, in_flight, open_files, outcomes
from tests.serving import service
from tests.waiting import until

SILENT = text(["never"], first=3600)


@pytest.mark.parametrize("accept", [EVENTS, "application/json"], ids=["stream", "whole"])
@pytest.mark.parametrize("script", [SILENT, text(["begun"], ends=False)], ids=["silent", "begun"])
async def test_a_client_that_shuts_its_sending_side_ends_its_question(
    script: Sequence[Piece], accept: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="app")
    async with PacedModel(script) as model, service(OPENAI_BASE_URL=model.base_url) as client:
        await in_flight(client)
        files = open_files()
        async with RawClient(str(client.base_url)) as half:
            await half.ask("/time/chat", accept)
            await until(lambda: model.asked == 1)
            if script is not SILENT and accept == EVENTS:
                await half.read_until(b"begun")
            half.shut_sending_side()
            answer = await half.read_to_end()
            await until(lambda: model.aborted == 1)
            assert await in_flight(client) == 0
        assert b"event: done" not in answer
        await until(lambda: open_files() <= files)
    assert outcomes(caplog)["client_gone"] == 1
    assert_nothing_was_reported(caplog)


async def test_an_answer_that_is_complete_still_reaches_a_client_that_shuts_its_sending_side() -> None:
    async with (
        PacedModel(text(["x" * 2**20] * 6)) as model,
        service(OPENAI_BASE_URL=model.base_url) as client,
        RawClient(str(client.base_url), receive_buffer=4096) as half,
    ):
        await half.ask("/time/chat", "text/plain")
        await until(lambda: model.finished == 1)
        await half.read_until(b"\r\n\r\nx")
        half.shut_sending_side()
        answer = await half.read_to_end()
    assert len(answer.partition(b"\r\n\r\n")[2]) == 6 * 2**20
